package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	templatev3 "github.com/envoyproxy/go-control-plane/envoy/extensions/path/match/uri_template/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"

	"hangar.io/glidepath/xds/model"
)

// pathMatch matches the paths of a template, and no others: no prefix, no
// trailing slash. What a variable may hold is authz's to check; Envoy takes
// nearly any segment for one.
func pathMatch(p *packer, path string) *routev3.RouteMatch {
	if !model.HasVariables(path) {
		return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: path}}
	}
	return &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_PathMatchPolicy{
		PathMatchPolicy: &corev3.TypedExtensionConfig{
			Name:        "envoy.path.match.uri_template.uri_template_matcher",
			TypedConfig: p.any(&templatev3.UriTemplateMatchConfig{PathTemplate: path}),
		},
	}}
}

func methodIs(method string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{
		Name: ":method",
		HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_Exact{Exact: method},
		}},
	}
}

// isNot is true of a header that is there and does not match an expression.
func isNot(header, expression string) *routev3.HeaderMatcher {
	return &routev3.HeaderMatcher{
		Name:        header,
		InvertMatch: true,
		HeaderMatchSpecifier: &routev3.HeaderMatcher_StringMatch{StringMatch: &matcherv3.StringMatcher{
			MatchPattern: &matcherv3.StringMatcher_SafeRegex{SafeRegex: regex(expression)},
		}},
	}
}

// regex matches a whole path, without its query.
func regex(expression string) *matcherv3.RegexMatcher {
	return &matcherv3.RegexMatcher{Regex: expression}
}
