package translate

import (
	"slices"

	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"

	"hangar.io/glidepath/xds/model"
)

// otherHosts names the virtual host of every host that is not people's.
const otherHosts = "_other"

// peopleRoutes gives the routes for people. They are the edge's own routes of
// the API, under the hosts of this way in; every other host and path is refused
// as a path without an operation is, with a trace and an audit line.
func peopleRoutes(p *packer, e *model.Edge) *routev3.RouteConfiguration {
	var served []model.Route
	for _, r := range e.Routes {
		if e.People.Serves(r) {
			served = append(served, r)
		}
	}
	out := routeConfiguration(peopleName,
		virtualHost(peopleName, slices.Clone(e.People.Hosts), inOrder(p, e, served)),
		virtualHost(otherHosts, []string{"*"}, inOrder(p, e, nil)),
	)
	// The port is that of the Gateway, which may be any.
	out.IgnorePortInHostMatching = true
	return out
}
