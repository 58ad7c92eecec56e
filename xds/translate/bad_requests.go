package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/anypb"

	"hangar.io/glidepath/xds/model"
)

// badPaths refuse what is no path of ours before any operation, and without
// asking authz: one that still holds a % when Envoy has made it canonical,
// since the escape stands for something that no name may hold; and a target
// with a byte that is not visible ASCII, which HTTP/2 lets through and a
// decision would see another way than a backend.
func badPaths(p *packer, e *model.Edge) []*routev3.Route {
	escaped := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_SafeRegex{SafeRegex: regex(`.*%.*`)}}
	invisible := &routev3.RouteMatch{
		PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""},
		Headers:       []*routev3.HeaderMatcher{isNot(":path", `[!-~]*`)},
	}
	return []*routev3.Route{badRequest(p, e, "_badpath", escaped), badRequest(p, e, "_badpath", invisible)}
}

// A name, or an address of IPv4 or IPv6, and a port up to 65535. That an
// address of IPv6 is one is not looked at: no reader takes what is between the
// brackets for anything else.
const (
	host = `([A-Za-z0-9._~-]+|\[[0-9A-Fa-f:.]+\])`
	port = `(6553[0-5]|655[0-2][0-9]|65[0-4][0-9]{2}|6[0-4][0-9]{3}|[1-5]?[0-9]{1,4})`
)

// badHost refuses a Host that is no name or address and port, with whatever a
// user would put before them or a second Host behind: parts that read one
// differently would take the call for another host's. (Envoy joins two of them
// with a comma.) A call without any is Envoy's own to refuse; an empty one names
// no other host.
func badHost(p *packer, e *model.Edge) *routev3.Route {
	return badRequest(p, e, "_badhost", &routev3.RouteMatch{
		PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""},
		Headers:       []*routev3.HeaderMatcher{isNot(":authority", `(`+host+`(:`+port+`)?)?`)},
	})
}

// badRequest refuses what match finds, without asking authz.
func badRequest(p *packer, e *model.Edge, name string, match *routev3.RouteMatch) *routev3.Route {
	reply := model.Reply{}
	for _, r := range e.Replies {
		if r.Status == model.StatusOtherRequest {
			reply = r
		}
	}
	return &routev3.Route{
		Name:      name,
		Match:     match,
		Decorator: spanName(name),
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
			Status:     reply.Status,
			BodyFormat: replyFormat(p, reply, answeredTrace),
		}},
		ResponseHeadersToAdd: []*corev3.HeaderValueOption{setTo("cache-control", "no-store")},
		TypedPerFilterConfig: map[string]*anypb.Any{filterExtAuthz: p.any(noExtAuthz())},
	}
}

// connect catches CONNECT, which has no path for another route to match and
// would otherwise be left hanging. Envoy refuses the upgrade that it is before
// it comes to the action.
func connect(p *packer) *routev3.Route {
	return &routev3.Route{
		Name:                 unmatchedName,
		Match:                &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_ConnectMatcher_{ConnectMatcher: &routev3.RouteMatch_ConnectMatcher{}}},
		Decorator:            spanName(unmatchedName),
		Action:               &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{Status: 405}},
		TypedPerFilterConfig: map[string]*anypb.Any{filterExtAuthz: p.any(noExtAuthz())},
	}
}
