package translate

import (
	"slices"
	"strings"
	"time"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	previoushostsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/retry/host/previous_hosts/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/xds/model"
)

func operationRoute(p *packer, e *model.Edge, r model.Route) *routev3.Route {
	match := pathMatch(p, r.Path)
	match.Headers = []*routev3.HeaderMatcher{methodIs(r.Method)}
	filters := map[string]*anypb.Any{
		filterExtAuthz: p.any(routeExtAuthz(callExtensions(r))),
		filterBody:     p.any(routeBodyLimit(r)),
	}
	if r.Stream {
		filters[filterMetadata] = p.any(routeStream())
	}
	if len(r.AuditFields) > 0 {
		filters[filterAudit] = p.any(routeAuditHeader(r))
	}
	return &routev3.Route{
		Name:                   r.Op,
		RequestHeadersToRemove: unreadHeaders(r),
		Match:                  match,
		Metadata:               metadata(map[string]string{keyOp: r.Op, keyTier: r.Tier}),
		Decorator:              spanName(r.Op),
		Action:                 &routev3.Route_Route{Route: action(p, e, r)},
		TypedPerFilterConfig:   filters,
	}
}

func action(p *packer, e *model.Edge, r model.Route) *routev3.RouteAction {
	out := &routev3.RouteAction{
		ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: r.Cluster},
		Timeout:          durationpb.New(r.Timeout),
		RetryPolicy:      retries(p, r),
	}
	switch {
	case r.Stream:
		// With a maximum duration Envoy takes no other timeout of the route,
		// so it stands on streams alone.
		out.IdleTimeout = durationpb.New(r.Silence)
		out.MaxStreamDuration = &routev3.RouteAction_MaxStreamDuration{
			MaxStreamDuration: durationpb.New(e.Limits.MaxStreamDuration),
		}
	case r.Timeout >= e.Limits.IdleTimeout:
		// A backend that takes its time is idle; its own timeout comes first.
		out.IdleTimeout = durationpb.New(r.Timeout + time.Second)
	}
	return out
}

// Conditions under which a call is sent again. In all of them no backend has
// begun to answer; in the first two none has seen the request at all, so that
// even a write is safe.
const (
	retryUnsent = "connect-failure,refused-stream"
	retryRead   = retryUnsent + ",reset"
	// A full replica says 503 before the first byte of a stream.
	retryStream = retryRead + ",retriable-status-codes"
)

// hostPicks is how often another endpoint is drawn before a call is sent again
// to the one that failed it. Least busy first, an endpoint that fails at once
// is drawn for every other pick.
const hostPicks = 20

// retries sends a call once more, to another endpoint where there is one.
func retries(p *packer, r model.Route) *routev3.RetryPolicy {
	out := &routev3.RetryPolicy{
		RetryOn:    retryUnsent,
		NumRetries: wrapperspb.UInt32(1),
		RetryBackOff: &routev3.RetryPolicy_RetryBackOff{
			BaseInterval: durationpb.New(10 * time.Millisecond),
			MaxInterval:  durationpb.New(100 * time.Millisecond),
		},
		RetryHostPredicate: []*routev3.RetryPolicy_RetryHostPredicate{{
			Name: "envoy.retry_host_predicates.previous_hosts",
			ConfigType: &routev3.RetryPolicy_RetryHostPredicate_TypedConfig{
				TypedConfig: p.any(&previoushostsv3.PreviousHostsPredicate{}),
			},
		}},
		HostSelectionRetryMaxAttempts: hostPicks,
	}
	switch {
	case r.Stream:
		out.RetryOn = retryStream
		out.RetriableStatusCodes = []uint32{503}
	case r.IsRead():
		out.RetryOn = retryRead
	}
	return out
}

// noCluster does not exist.
const noCluster = "none"

// unmatched is a route that is no operation's. authz refuses it, so that the
// answer has the headers and the words of every refusal; methods are those
// that the path does have. Should authz ever allow it, there is nothing
// behind: a 404. (A direct response would do that too, but Envoy gives those
// no trace header when authz is away.)
func unmatched(p *packer, match *routev3.RouteMatch, methods []string) *routev3.Route {
	extensions := map[string]string{"op": unmatchedName}
	if len(methods) > 0 {
		methods = slices.Clone(methods)
		slices.Sort(methods)
		extensions["allow"] = strings.Join(methods, ", ")
	}
	return &routev3.Route{
		Name:      unmatchedName,
		Match:     match,
		Decorator: spanName(unmatchedName),
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{
			ClusterSpecifier:            &routev3.RouteAction_Cluster{Cluster: noCluster},
			ClusterNotFoundResponseCode: routev3.RouteAction_NOT_FOUND,
		}},
		TypedPerFilterConfig: map[string]*anypb.Any{filterExtAuthz: p.any(routeExtAuthz(extensions))},
	}
}

// spanName names the span of a call and tells nobody else.
func spanName(name string) *routev3.Decorator {
	return &routev3.Decorator{Operation: name, Propagate: wrapperspb.Bool(false)}
}
