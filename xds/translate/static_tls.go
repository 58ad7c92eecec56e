package translate

import (
	"fmt"

	clusterv3 "github.com/envoyproxy/go-control-plane/envoy/config/cluster/v3"
	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	listenerv3 "github.com/envoyproxy/go-control-plane/envoy/config/listener/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	"google.golang.org/protobuf/proto"
)

// staticListenerTLS has a listener take its secret from the same file, where
// Envoy finds one that is named without a source. It changes l.
func staticListenerTLS(l *listenerv3.Listener) error {
	for _, chain := range l.FilterChains {
		config := &tlsv3.DownstreamTlsContext{}
		if err := rewrite(chain.TransportSocket, config, func() *tlsv3.CommonTlsContext { return config.CommonTlsContext }); err != nil {
			return fmt.Errorf("putting the secrets into the listener: %w", err)
		}
	}
	return nil
}

// staticClusters gives copies of clusters that take their secrets from the same
// file.
func staticClusters(in []*clusterv3.Cluster) ([]*clusterv3.Cluster, error) {
	var out []*clusterv3.Cluster
	for _, c := range in {
		c = proto.CloneOf(c)
		config := &tlsv3.UpstreamTlsContext{}
		if err := rewrite(c.TransportSocket, config, func() *tlsv3.CommonTlsContext { return config.CommonTlsContext }); err != nil {
			return nil, fmt.Errorf("putting the secrets into cluster %s: %w", c.Name, err)
		}
		out = append(out, c)
	}
	return out, nil
}

// rewrite takes the sources of secrets out of the configuration of a socket, if
// there is a socket with one.
func rewrite(socket *corev3.TransportSocket, config proto.Message, common func() *tlsv3.CommonTlsContext) error {
	if socket == nil {
		return nil
	}
	if err := socket.GetTypedConfig().UnmarshalTo(config); err != nil {
		return err
	}
	for _, secret := range common().GetTlsCertificateSdsSecretConfigs() {
		secret.SdsConfig = nil
	}
	if authorities := common().GetCombinedValidationContext().GetValidationContextSdsSecretConfig(); authorities != nil {
		authorities.SdsConfig = nil
	}
	p := &packer{}
	socket.ConfigType = &corev3.TransportSocket_TypedConfig{TypedConfig: p.any(config)}
	if len(p.errs) > 0 {
		return p.errs[0]
	}
	return nil
}
