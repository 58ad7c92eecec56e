package translate

import (
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	"google.golang.org/protobuf/types/known/structpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/xds/model"
)

// listener gives a listener for callers. All of them are alike but for their
// routes: a call is decided, answered and written down the same way, whichever
// way it came in.
func listener(p *packer, e *model.Edge, name string, on model.Address) *listenerv3.Listener {
	return &listenerv3.Listener{
		Name:    name,
		Address: address(on),
		// What a log line says when the call itself has nothing to say it
		// with: log formats know no literals, but they can read these.
		Metadata: metadata(map[string]string{
			keyDeny:      decisionDeny,
			keyUnmatched: unmatchedName,
		}),
		PerConnectionBufferLimitBytes: wrapperspb.UInt32(e.Limits.BufferBytes),
		FilterChains: []*listenerv3.FilterChain{{
			TransportSocket:               listenerTLS(p, e.TLS),
			TransportSocketConnectTimeout: acceptTimeout(e.TLS),
			Filters: []*listenerv3.Filter{{
				Name:       "envoy.filters.network.http_connection_manager",
				ConfigType: &listenerv3.Filter_TypedConfig{TypedConfig: p.any(connectionManager(p, e, name))},
			}},
		}},
	}
}

func address(a model.Address) *corev3.Address {
	if a.Path != "" {
		return &corev3.Address{Address: &corev3.Address_Pipe{Pipe: &corev3.Pipe{Path: a.Path}}}
	}
	return &corev3.Address{Address: &corev3.Address_SocketAddress{SocketAddress: &corev3.SocketAddress{
		Address:       a.Host,
		PortSpecifier: &corev3.SocketAddress_PortValue{PortValue: uint32(a.Port)},
	}}}
}

// metadataName is the namespace of all metadata of our own: of routes, of the
// listener, and of calls.
const metadataName = "glidepath"

// metadata gives metadata of our namespace.
func metadata(values map[string]string) *corev3.Metadata {
	fields := map[string]*structpb.Value{}
	for k, v := range values {
		fields[k] = structpb.NewStringValue(v)
	}
	return &corev3.Metadata{FilterMetadata: map[string]*structpb.Struct{metadataName: {Fields: fields}}}
}
