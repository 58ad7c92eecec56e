package translate

import (
	"slices"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	bufferv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/buffer/v3"
	routerv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/http/router/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/internal/audit"
	"hangar.io/glidepath/xds/model"
)

// A request that calls itself gRPC gets every answer that Envoy makes, a
// refusal by authz included, as gRPC would give it: status 200 and no body.
// Only what comes from a cluster is left alone. So there is a cluster that is
// this Envoy itself: a listener inside the process, which no socket leads to
// and which refuses whatever it gets. No other process has to be up for it.

// refusalsName names the listener and the cluster. No backend's cluster can
// have such a name.
const refusalsName = "_refusals"

// grpcCall sends a request that calls itself gRPC to the refusals.
func grpcCall(p *packer) *routev3.Route {
	return &routev3.Route{
		Name: unmatchedName,
		Match: &routev3.RouteMatch{
			PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"},
			Grpc:          &routev3.RouteMatch_GrpcRouteMatchOptions{},
		},
		Decorator: spanName(unmatchedName),
		Action: &routev3.Route_Route{Route: &routev3.RouteAction{
			ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: refusalsName},
		}},
		// Else the refusals would answer as gRPC too.
		RequestHeadersToRemove: []string{"content-type"},
		RequestHeadersToAdd:    []*corev3.HeaderValueOption{setTo(traceHeader, "%TRACE_ID%")},
		TypedPerFilterConfig: map[string]*anypb.Any{
			filterExtAuthz: p.any(noExtAuthz()),
			// The body is not waited for: that it is too large would be an
			// answer of Envoy's again.
			filterBody: p.any(&bufferv3.BufferPerRoute{Override: &bufferv3.BufferPerRoute_Disabled{Disabled: true}}),
		},
	}
}

func refusalsListener(p *packer, r model.Reply) *listenerv3.Listener {
	facts, err := audit.Encode(audit.Fields{"rule": r.Rule, "error": r.Message})
	if err != nil {
		p.errs = append(p.errs, err)
	}
	everything := &routev3.Route{
		Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: ""}},
		Action: &routev3.Route_DirectResponse{DirectResponse: &routev3.DirectResponseAction{
			Status:     r.Status,
			BodyFormat: replyFormat(p, r, "%REQ("+traceHeader+")%"),
		}},
		ResponseHeadersToAdd: []*corev3.HeaderValueOption{
			setTo("cache-control", "no-store"), setTo(auditHeaderName, facts),
		},
	}
	manager := &hcmv3.HttpConnectionManager{
		CodecType:  hcmv3.HttpConnectionManager_HTTP2,
		StatPrefix: refusalsName,
		RouteSpecifier: &hcmv3.HttpConnectionManager_RouteConfig{RouteConfig: &routev3.RouteConfiguration{
			Name:         refusalsName,
			VirtualHosts: []*routev3.VirtualHost{{Name: refusalsName, Domains: []string{"*"}, Routes: []*routev3.Route{everything}}},
		}},
		HttpFilters:                []*hcmv3.HttpFilter{filter(p, filterRouter, &routerv3.Router{SuppressEnvoyHeaders: true})},
		ServerHeaderTransformation: hcmv3.HttpConnectionManager_PASS_THROUGH,
	}
	return &listenerv3.Listener{
		Name:              refusalsName,
		ListenerSpecifier: &listenerv3.Listener_InternalListener{InternalListener: &listenerv3.Listener_InternalListenerConfig{}},
		FilterChains: []*listenerv3.FilterChain{{
			Filters: []*listenerv3.Filter{{
				Name:       "envoy.filters.network.http_connection_manager",
				ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: p.any(manager)},
			}},
		}},
	}
}

func refusalsCluster(p *packer, e *model.Edge) *clusterv3.Cluster {
	inside := &corev3.Address{Address: &corev3.Address_EnvoyInternalAddress{EnvoyInternalAddress: &corev3.EnvoyInternalAddress{
		AddressNameSpecifier: &corev3.EnvoyInternalAddress_ServerListenerName{ServerListenerName: refusalsName},
	}}}
	return &clusterv3.Cluster{
		Name:                          refusalsName,
		ConnectTimeout:                durationpb.New(e.AuthzTimeout),
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: clusterv3.Cluster_STATIC},
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(upstreamBuffer),
		CircuitBreakers:               circuitBreakers(refusalsBreaker(e)),
		LoadAssignment: &endpointv3.ClusterLoadAssignment{
			ClusterName: refusalsName,
			Endpoints: []*endpointv3.LocalityLbEndpoints{{LbEndpoints: []*endpointv3.LbEndpoint{{
				HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: inside}},
			}}}},
		},
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": p.any(refusalsProtocol()),
		},
	}
}

// refusalsBreaker is as wide as that of decisions: over it Envoy would answer
// by itself, and so as gRPC.
func refusalsBreaker(e *model.Edge) model.Breaker {
	i := slices.IndexFunc(e.Clusters, func(c model.Cluster) bool { return c.Name == e.Authz })
	return e.Clusters[i].Breaker // Validate has seen that it is there
}

// refusalsProtocol is HTTP/2, where an answer may come before the body has
// been read.
func refusalsProtocol() *httpv3.HttpProtocolOptions {
	return &httpv3.HttpProtocolOptions{
		UpstreamProtocolOptions: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
			ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
				Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
					InitialStreamWindowSize:     wrapperspb.UInt32(upstreamWindow),
					InitialConnectionWindowSize: wrapperspb.UInt32(upstreamConnectionWindow),
				},
			},
		}},
	}
}

// setTo sets a header of an answer, or of a request to a cluster.
func setTo(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}
