package translate

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/anypb"

	"hangar.io/glidepath/xds/model"
)

// Resources are what Envoy is told, each list sorted by name. They are not
// changed once made, so they may be shared.
type Resources struct {
	Listeners []*listenerv3.Listener
	Routes    []*routev3.RouteConfiguration
	Clusters  []*clusterv3.Cluster
	// Secrets name files; they hold no key.
	Secrets []*tlsv3.Secret
}

// The listeners for callers, each with a route configuration of its name: that
// of the edge, and that of the route for people, where there is one.
const (
	edgeName   = "edge"
	peopleName = "people"
)

// Translate gives the resources of a model that it validates first. Every
// message is checked against Envoy's own constraints, so an error is a fault
// of the model's rules or of this package, never something for Envoy to find.
func Translate(e *model.Edge) (*Resources, error) {
	if err := e.Validate(); err != nil {
		return nil, fmt.Errorf("the edge is not whole: %w", err)
	}
	p := &packer{}
	res := &Resources{
		Listeners: []*listenerv3.Listener{refusalsListener(p, e.GRPCReply), listener(p, e, edgeName, e.Listen)},
		Routes:    []*routev3.RouteConfiguration{routes(p, e)},
		Secrets:   secrets(e),
	}
	if e.People != nil {
		res.Listeners = append(res.Listeners, listener(p, e, peopleName, e.People.Listen))
		res.Routes = append(res.Routes, peopleRoutes(p, e))
	}
	res.Clusters = append(res.Clusters, refusalsCluster(p, e))
	for _, c := range e.Clusters {
		res.Clusters = append(res.Clusters, cluster(p, c))
	}
	slices.SortFunc(res.Clusters, func(a, b *clusterv3.Cluster) int { return cmp.Compare(a.Name, b.Name) })
	for _, m := range res.all() {
		p.check(m)
	}
	if err := errors.Join(p.errs...); err != nil {
		return nil, fmt.Errorf("translating the edge: %w", err)
	}
	return res, nil
}

func (r *Resources) all() []proto.Message {
	var out []proto.Message
	for _, m := range r.Listeners {
		out = append(out, m)
	}
	for _, m := range r.Routes {
		out = append(out, m)
	}
	for _, m := range r.Clusters {
		out = append(out, m)
	}
	for _, m := range r.Secrets {
		out = append(out, m)
	}
	return out
}

// packer packs messages into each other and remembers what went wrong, so
// that the files which say what Envoy does stay free of error handling.
type packer struct{ errs []error }

// any packs m with its fields in a fixed order: the bytes decide whether
// anything has changed.
func (p *packer) any(m proto.Message) *anypb.Any {
	p.check(m)
	out := &anypb.Any{}
	if err := anypb.MarshalFrom(out, m, proto.MarshalOptions{Deterministic: true}); err != nil {
		p.errs = append(p.errs, fmt.Errorf("packing %s: %w", m.ProtoReflect().Descriptor().Name(), err))
	}
	return out
}

// check holds m against the constraints of Envoy's API.
func (p *packer) check(m proto.Message) {
	v, ok := m.(interface{ ValidateAll() error })
	if !ok {
		return
	}
	if err := v.ValidateAll(); err != nil {
		p.errs = append(p.errs, fmt.Errorf("checking %s: %w", m.ProtoReflect().Descriptor().Name(), err))
	}
}
