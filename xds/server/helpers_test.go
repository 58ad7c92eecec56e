package server

import (
	"testing"
	"time"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	routev3 "github.com/envoyproxy/go-control-plane/envoy/config/route/v3"
	hcmv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/filters/network/http_connection_manager/v3"
	"google.golang.org/protobuf/types/known/anypb"
	"google.golang.org/protobuf/types/known/durationpb"

	"hangar.io/glidepath/xds/translate"
)

// resources are a small consistent set; the timeout is what differs between
// two of them.
func resources(t *testing.T, timeout time.Duration) *translate.Resources {
	t.Helper()
	manager, err := anypb.New(&hcmv3.HttpConnectionManager{
		StatPrefix: "edge",
		RouteSpecifier: &hcmv3.HttpConnectionManager_Rds{Rds: &hcmv3.Rds{
			RouteConfigName: "edge",
			ConfigSource:    &corev3.ConfigSource{ConfigSourceSpecifier: &corev3.ConfigSource_Ads{Ads: &corev3.AggregatedConfigSource{}}},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return &translate.Resources{
		Listeners: []*listenerv3.Listener{{
			Name: "edge",
			FilterChains: []*listenerv3.FilterChain{{Filters: []*listenerv3.Filter{{
				Name:       "envoy.filters.network.http_connection_manager",
				ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: manager},
			}}}},
		}},
		Routes: []*routev3.RouteConfiguration{{
			Name: "edge",
			VirtualHosts: []*routev3.VirtualHost{{
				Name: "edge", Domains: []string{"*"},
				Routes: []*routev3.Route{{
					Match: &routev3.RouteMatch{PathSpecifier: &routev3.RouteMatch_Prefix{Prefix: "/"}},
					Action: &routev3.Route_Route{Route: &routev3.RouteAction{
						ClusterSpecifier: &routev3.RouteAction_Cluster{Cluster: "livehub"}, Timeout: durationpb.New(timeout),
					}},
				}},
			}},
		}},
		Clusters: []*clusterv3.Cluster{
			{Name: "authz", ConnectTimeout: durationpb.New(time.Second)},
			{Name: "livehub", ConnectTimeout: durationpb.New(time.Second)},
		},
	}
}

func snapshot(t *testing.T, timeout time.Duration) *Snapshot {
	t.Helper()
	s, err := NewSnapshot(resources(t, timeout))
	if err != nil {
		t.Fatal(err)
	}
	return s
}
