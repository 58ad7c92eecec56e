package translate

import (
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"hangar.io/glidepath/xds/model"
)

// decisionPublic is the decision of a call for what everyone may have.
const decisionPublic = "public"

// page serves a page without asking authz, and refuses every other method as
// for an operation. It is the only route that gives something to a caller
// that nobody knows, so all that it can give is in it.
func page(p *packer, in *model.Page) []*routev3.Route {
	if in == nil {
		return nil
	}
	path := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Path{Path: in.Path}}
	get := &routev3.RouteMatch{
		PathSpecifier: &routev3.RouteMatch_Path{Path: in.Path},
		Headers:       []*routev3.HeaderMatcher{methodIs(http.MethodGet)},
	}
	return []*routev3.Route{{
		Name:      in.Name,
		Match:     get,
		Metadata:  metadata(map[string]string{keyDecision: decisionPublic}),
		Decorator: spanName(in.Name),
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
			Status: http.StatusOK,
			Body:   &corev3.DataSource{Specifier: &corev3.DataSource_InlineBytes{InlineBytes: in.Body}},
		}},
		ResponseHeadersToAdd: []*corev3.HeaderValueOption{
			setTo("content-type", "text/html; charset=utf-8"),
			setTo("content-security-policy", in.Policy),
			setTo("cache-control", "no-store"),
			setTo("x-content-type-options", "nosniff"),
			setTo("x-frame-options", "DENY"),
			setTo("referrer-policy", "no-referrer"),
			setTo("cross-origin-opener-policy", "same-origin"),
			setTo("cross-origin-resource-policy", "same-origin"),
		},
		TypedPerFilterConfig: map[string]*anypb.Any{filterExtAuthz: p.any(noExtAuthz())},
	}, unmatched(p, path, []string{http.MethodGet})}
}
