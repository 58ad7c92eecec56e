package translate

import (
	"cmp"
	"slices"
	"strings"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/xds/model"
)

// unmatchedName is the name of every route that is no operation's, and so the
// op of calls that name none.
const unmatchedName = "_unmatched"

// routes gives the routes of the edge itself, which any host leads to.
func routes(p *packer, e *model.Edge) *routev3.RouteConfiguration {
	out := routeConfiguration(edgeName, virtualHost(edgeName, []string{"*"}, inOrder(p, e, e.Routes, page(p, e.Board)...)))
	if e.Board != nil {
		out.MaxDirectResponseBodySizeBytes = wrapperspb.UInt32(model.MaxPageBytes)
	}
	return out
}

// inOrder gives all routes of a virtual host that serves these operations.
// Envoy takes the first route that matches: what calls itself gRPC, what is no
// path or host at all, then more, then path by path (the more exact first) the operations
// and the refusal of every other method, then the refusal of every other path.
func inOrder(p *packer, e *model.Edge, operations []model.Route, more ...*routev3.Route) []*routev3.Route {
	out := append([]*routev3.Route{grpcCall(p)}, badPaths(p, e)...)
	out = append(out, badHost(p, e), connect(p))
	out = append(out, more...)
	for _, group := range byPath(operations) {
		var methods []string
		for _, r := range group {
			out = append(out, operationRoute(p, e, r))
			methods = append(methods, r.Method)
		}
		out = append(out, unmatched(p, pathMatch(p, group[0].Path), methods))
	}
	everything := &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}}
	return append(out, unmatched(p, everything, nil))
}

func virtualHost(name string, domains []string, all []*routev3.Route) *routev3.VirtualHost {
	return &routev3.VirtualHost{Name: name, Domains: domains, Routes: all}
}

func routeConfiguration(name string, hosts ...*routev3.VirtualHost) *routev3.RouteConfiguration {
	return &routev3.RouteConfiguration{
		Name:                   name,
		VirtualHosts:           hosts,
		RequestHeadersToRemove: credentialHeaders,
		ResponseHeadersToAdd: []*corev3.HeaderValueOption{{
			Header:       &corev3.HeaderValue{Key: traceHeader, Value: "%TRACE_ID%"},
			AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
		}},
		// The routes of no operation go to a cluster that does not exist (see
		// unmatched); the model has checked all others.
		ValidateClusters: wrapperspb.Bool(false),
	}
}

// byPath groups the routes by the shape of their path, the more exact path
// first and the methods of one path in order.
func byPath(all []model.Route) [][]model.Route {
	all = slices.Clone(all)
	slices.SortFunc(all, func(a, b model.Route) int {
		return cmp.Or(compareShapes(model.Shape(a.Path), model.Shape(b.Path)), cmp.Compare(a.Method, b.Method))
	})
	var groups [][]model.Route
	for _, r := range all {
		if n := len(groups); n > 0 && model.Shape(groups[n-1][0].Path) == model.Shape(r.Path) {
			groups[n-1] = append(groups[n-1], r)
			continue
		}
		groups = append(groups, []model.Route{r})
	}
	return groups
}

// compareShapes puts a plain segment before a variable at the same place, so
// that no variable takes what another path names.
func compareShapes(a, b string) int {
	return slices.CompareFunc(strings.Split(a, "/"), strings.Split(b, "/"), func(x, y string) int {
		if model.HasVariables(x) != model.HasVariables(y) {
			if model.HasVariables(x) {
				return 1
			}
			return -1
		}
		return cmp.Compare(x, y)
	})
}
