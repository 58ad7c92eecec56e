package translate

import (
	"fmt"

	bootstrapv3 "github.com/envoyproxy/go-control-plane/envoy/config/bootstrap/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	// The bootstrap holds messages of this kind and of the two below, which nothing
	// else here mentions; without them its JSON could not be read.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/bootstrap/internal_listener/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	// As the one above.
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/downstream_connections/v3"
	_ "github.com/envoyproxy/go-control-plane/envoy/extensions/resource_monitors/fixed_heap/v3"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"sigs.k8s.io/yaml"
)

// Static gives one configuration file with everything inline, from the
// bootstrap that an Envoy of the edge starts with and the resources that xds
// would send it: what Envoy's own validation can be run on, and an edge that
// needs no xds.
func Static(bootstrap []byte, res *Resources) ([]byte, error) {
	raw, err := yaml.YAMLToJSONStrict(bootstrap)
	if err != nil {
		return nil, fmt.Errorf("reading the bootstrap: %w", err)
	}
	b := &bootstrapv3.Bootstrap{}
	if err := protojson.Unmarshal(raw, b); err != nil {
		return nil, fmt.Errorf("reading the bootstrap: %w", err)
	}
	listeners, err := inline(res)
	if err != nil {
		return nil, err
	}
	clusters, err := staticClusters(res.Clusters)
	if err != nil {
		return nil, err
	}
	// The bootstrap's only cluster is the way to xds.
	b.DynamicResources = nil
	b.StaticResources = &bootstrapv3.Bootstrap_StaticResources{
		Listeners: listeners,
		Clusters:  clusters,
		Secrets:   res.Secrets,
	}
	return YAML(b)
}

// inline gives the listeners with their routes inside, without changing res.
func inline(res *Resources) ([]*listenerv3.Listener, error) {
	var out []*listenerv3.Listener
	for _, l := range res.Listeners {
		l := proto.CloneOf(l)
		config := l.FilterChains[0].Filters[0].GetTypedConfig()
		hcm := &hcmv3.HttpConnectionManager{}
		if err := config.UnmarshalTo(hcm); err != nil {
			return nil, fmt.Errorf("putting the routes into the listener: %w", err)
		}
		for _, r := range res.Routes {
			if r.Name == hcm.GetRds().GetRouteConfigName() {
				hcm.RouteSpecifier = &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: r}
			}
		}
		p := &packer{}
		config = p.any(hcm)
		if len(p.errs) > 0 {
			return nil, fmt.Errorf("putting the routes into the listener: %w", p.errs[0])
		}
		l.FilterChains[0].Filters[0].ConfigType = &listenerv3.Filter_TypedConfig{TypedConfig: config}
		if err := staticListenerTLS(l); err != nil {
			return nil, err
		}
		out = append(out, l)
	}
	return out, nil
}

// YAML gives a message as YAML with sorted keys: the same bytes for the same
// message, which JSON of protobuf by itself does not promise.
func YAML(m proto.Message) ([]byte, error) {
	raw, err := protojson.MarshalOptions{UseProtoNames: true}.Marshal(m)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	out, err := yaml.JSONToYAML(raw)
	if err != nil {
		return nil, fmt.Errorf("writing %s: %w", m.ProtoReflect().Descriptor().Name(), err)
	}
	return out, nil
}
