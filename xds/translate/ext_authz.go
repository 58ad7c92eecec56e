package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	extauthzv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/ext_authz/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"google.golang.org/protobuf/types/known/durationpb"

	"hangar.io/glidepath/internal/ratelimit"
	"hangar.io/glidepath/xds/model"
)

// decisionHeaders are what authz reads of a request, besides its method and
// path. Nothing else is sent to it.
var decisionHeaders = []string{
	"authorization",
	"x-glidepath-authorization",
	"x-glidepath-on-behalf-of",
	"x-request-id",
}

// extAuthz asks authz about every call. Whatever keeps it from answering is a
// refusal.
func extAuthz(e *model.Edge) *extauthzv3.ExtAuthz {
	var allowed []*matcherv3.StringMatcher
	for _, name := range decisionHeaders {
		allowed = append(allowed, &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: name}})
	}
	return &extauthzv3.ExtAuthz{
		TransportApiVersion: corev3.ApiVersion_V3,
		Services: &extauthzv3.ExtAuthz_GrpcService{GrpcService: &corev3.GrpcService{
			TargetSpecifier: &corev3.GrpcService_EnvoyGrpc_{EnvoyGrpc: &corev3.GrpcService_EnvoyGrpc{ClusterName: e.Authz}},
			Timeout:         durationpb.New(e.AuthzTimeout),
		}},
		FailureModeAllow: false,
		// An outage is not a refusal of the caller: the default, 403, would
		// say so.
		StatusOnError: &typev3.HttpStatus{Code: typev3.StatusCode_ServiceUnavailable},
		// The route was chosen from the request; a decision does not change
		// which operation it is about.
		ClearRouteCache:   false,
		ValidateMutations: true,
		// Each header apart and as it is: joined ones would be made UTF-8, and
		// what was decided would not be what was sent.
		EncodeRawHeaders: true,
		AllowedHeaders:   &matcherv3.ListStringMatcher{Patterns: allowed},
	}
}

// callExtensions are what authz is told of a call besides the request. Only
// a route's own configuration gets there, nothing that a caller sends.
func callExtensions(r model.Route) map[string]string {
	out := map[string]string{"op": r.Op}
	for name, l := range map[string]ratelimit.Limit{
		ratelimit.Extension: r.RateLimit, ratelimit.CallerExtension: r.CallerRateLimit,
	} {
		if !l.IsZero() {
			out[name] = l.String()
		}
	}
	return out
}

// routeExtAuthz tells authz which operation a route is, and how much of it one
// caller may have.
func routeExtAuthz(extensions map[string]string) *extauthzv3.ExtAuthzPerRoute {
	return &extauthzv3.ExtAuthzPerRoute{Override: &extauthzv3.ExtAuthzPerRoute_CheckSettings{
		CheckSettings: &extauthzv3.CheckSettings{ContextExtensions: extensions},
	}}
}

// noExtAuthz is for routes that refuse everything by themselves.
func noExtAuthz() *extauthzv3.ExtAuthzPerRoute {
	return &extauthzv3.ExtAuthzPerRoute{Override: &extauthzv3.ExtAuthzPerRoute_Disabled{Disabled: true}}
}
