package translate

import (
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	endpointv3 "github.com/envoyproxy/go-control-plane/envoy/config/endpoint/v3"
	httpv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/upstreams/http/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/xds/model"
)

// upstreamWindow is the HTTP/2 window of a stream to a cluster. Envoy's
// default of 16 MiB would let it swallow thousands of events that a slow
// viewer has not read, where the backend could not see it.
const upstreamWindow = 64 << 10

// upstreamConnectionWindow is the window of a connection's streams together.
const upstreamConnectionWindow = 1 << 20

// upstreamBuffer bounds what is held of one connection to a cluster.
const upstreamBuffer = 32 << 10

// upstreamIdle closes an idle connection before a Go server's own two minutes
// do, so that a call is never sent into a connection that is being closed.
const upstreamIdle = 90 * time.Second

func cluster(p *packer, c model.Cluster) *clusterv3.Cluster {
	out := &clusterv3.Cluster{
		Name:                          c.Name,
		ConnectTimeout:                durationpb.New(c.ConnectTimeout),
		ClusterDiscoveryType:          &clusterv3.Cluster_Type{Type: discovery(c)},
		LbPolicy:                      clusterv3.Cluster_LEAST_REQUEST,
		LoadAssignment:                endpoints(c),
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(upstreamBuffer),
		CircuitBreakers:               circuitBreakers(c.Breaker),
		TypedExtensionProtocolOptions: map[string]*anypb.Any{
			"envoy.extensions.upstreams.http.v3.HttpProtocolOptions": p.any(protocol(c)),
		},
		TransportSocket: clusterTLS(p, c),
	}
	if out.GetType() == clusterv3.Cluster_STRICT_DNS {
		out.DnsLookupFamily = clusterv3.Cluster_ALL
	}
	return out
}

func circuitBreakers(b model.Breaker) *clusterv3.CircuitBreakers {
	return &clusterv3.CircuitBreakers{Thresholds: []*clusterv3.CircuitBreakers_Thresholds{{
		MaxConnections:     wrapperspb.UInt32(b.Connections),
		MaxPendingRequests: wrapperspb.UInt32(b.Pending),
		MaxRequests:        wrapperspb.UInt32(b.Requests),
		MaxRetries:         wrapperspb.UInt32(b.Retries),
	}}}
}

// discovery: fixed addresses are as they stand, names are resolved again and
// again, to all the addresses they have.
func discovery(c model.Cluster) clusterv3.Cluster_DiscoveryType {
	for _, a := range c.Endpoints {
		if a.Path == "" && !a.IsIP() {
			return clusterv3.Cluster_STRICT_DNS
		}
	}
	return clusterv3.Cluster_STATIC
}

func endpoints(c model.Cluster) *endpointv3.ClusterLoadAssignment {
	out := &endpointv3.ClusterLoadAssignment{ClusterName: c.Name}
	if len(c.Endpoints) == 0 {
		return out
	}
	local := &endpointv3.LocalityLbEndpoints{}
	for _, a := range c.Endpoints {
		local.LbEndpoints = append(local.LbEndpoints, &endpointv3.LbEndpoint{
			HostIdentifier: &endpointv3.LbEndpoint_Endpoint{Endpoint: &endpointv3.Endpoint{Address: address(a)}},
		})
	}
	out.Endpoints = []*endpointv3.LocalityLbEndpoints{local}
	return out
}

func protocol(c model.Cluster) *httpv3.HttpProtocolOptions {
	out := &httpv3.HttpProtocolOptions{
		CommonHttpProtocolOptions: &corev3.HttpProtocolOptions{IdleTimeout: durationpb.New(upstreamIdle)},
	}
	explicit := &httpv3.HttpProtocolOptions_ExplicitHttpConfig{
		ProtocolConfig: &httpv3.HttpProtocolOptions_ExplicitHttpConfig_HttpProtocolOptions{
			HttpProtocolOptions: &corev3.Http1ProtocolOptions{},
		},
	}
	if c.HTTP2 {
		explicit.ProtocolConfig = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_Http2ProtocolOptions{
			Http2ProtocolOptions: &corev3.Http2ProtocolOptions{
				InitialStreamWindowSize:     wrapperspb.UInt32(upstreamWindow),
				InitialConnectionWindowSize: wrapperspb.UInt32(upstreamConnectionWindow),
			},
		}
	}
	out.UpstreamProtocolOptions = &httpv3.HttpProtocolOptions_ExplicitHttpConfig_{ExplicitHttpConfig: explicit}
	return out
}
