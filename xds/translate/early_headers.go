package translate

import (
	mutationv3 "github.com/envoyproxy/go-control-plane/envoy/config/common/mutation_rules/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	earlyv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/http/early_header_mutation/header_mutation/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
)

// internalHeaders mean something only when the edge or a backend says them. A
// caller's are removed before a route is chosen or a filter runs, so that
// nothing behind can be told a lie with them.
var internalHeaders = []string{
	"x-glidepath-identity",
	"x-glidepath-renewal",
	"x-glidepath-audit",
	"x-glidepath-trace-id",
	// The edge's own id of the call; it joins audit lines.
	"x-request-id",
	"x-client-trace-id",
	// Other proxies' words for another path, host or caller.
	"forwarded",
	"x-forwarded-client-cert",
	"x-forwarded-host",
	"x-forwarded-path",
	"x-forwarded-prefix",
	"x-http-method-override",
	"x-original-url",
	"x-rewrite-url",
}

// internalPrefixes are removed whatever follows.
var internalPrefixes = []string{"x-envoy-", "x-glidepath-internal-"}

func earlyHeaders(p *packer) []*corev3.TypedExtensionConfig {
	var mutations []*mutationv3.HeaderMutation
	for _, name := range internalHeaders {
		mutations = append(mutations, removeHeader(name))
	}
	for _, prefix := range internalPrefixes {
		mutations = append(mutations, &mutationv3.HeaderMutation{Action: &mutationv3.HeaderMutation_RemoveOnMatch_{
			RemoveOnMatch: &mutationv3.HeaderMutation_RemoveOnMatch{KeyMatcher: &matcherv3.StringMatcher{
				MatchPattern: &matcherv3.StringMatcher_Prefix{Prefix: prefix},
			}},
		}})
	}
	mutations = append(mutations, soundTrace()...)
	return []*corev3.TypedExtensionConfig{{
		Name:        "envoy.http.early_header_mutation.header_mutation",
		TypedConfig: p.any(&earlyv3.HeaderMutation{Mutations: mutations}),
	}}
}

// credentialHeaders are for authz alone. The router removes them from every call
// that it forwards, on every route. authz does not name them in its answers as
// well: Envoy would do that work anew for each call.
var credentialHeaders = []string{
	"authorization",
	"cookie",
	"proxy-authorization",
	"x-glidepath-authorization",
	"x-glidepath-on-behalf-of",
	// Not a credential: Envoy has answered it, and a backend would again.
	"expect",
	// Not a credential: Envoy's word for the caller's address.
	"x-envoy-external-address",
}
