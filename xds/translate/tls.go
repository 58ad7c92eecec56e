package translate

import (
	"cmp"
	"path"
	"slices"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	tlsv3 "github.com/envoyproxy/go-control-plane/envoy/extensions/transport_sockets/tls/v3"
	matcherv3 "github.com/envoyproxy/go-control-plane/envoy/type/matcher/v3"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/durationpb"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"hangar.io/glidepath/xds/model"
)

// listenerSecret names the certificate of the listener.
const listenerSecret = "listener"

// authoritiesOf names the authorities of a cluster.
func authoritiesOf(c model.Cluster) string { return "authorities-" + c.Name }

// handshakeTimeout bounds how long a caller may take for the TLS handshake.
const handshakeTimeout = 5 * time.Second

// ciphers are those of TLS 1.2: forward secret and authenticated. TLS 1.3 has
// no others.
var ciphers = []string{
	"ECDHE-ECDSA-AES128-GCM-SHA256", "ECDHE-RSA-AES128-GCM-SHA256",
	"ECDHE-ECDSA-CHACHA20-POLY1305", "ECDHE-RSA-CHACHA20-POLY1305",
	"ECDHE-ECDSA-AES256-GCM-SHA384", "ECDHE-RSA-AES256-GCM-SHA384",
}

func tlsParameters() *tlsv3.TlsParameters {
	return &tlsv3.TlsParameters{
		TlsMinimumProtocolVersion: tlsv3.TlsParameters_TLSv1_2,
		TlsMaximumProtocolVersion: tlsv3.TlsParameters_TLSv1_3,
		CipherSuites:              ciphers,
	}
}

// secrets say where the files are. What is in them never passes through xds:
// Envoy reads them itself, and again when something is moved in their folder,
// as the kubelet does with a mounted Secret.
func secrets(e *model.Edge) []*tlsv3.Secret {
	var out []*tlsv3.Secret
	if t := e.TLS; t != nil {
		out = append(out, &tlsv3.Secret{Name: listenerSecret, Type: &tlsv3.Secret_TlsCertificate{
			TlsCertificate: &tlsv3.TlsCertificate{
				CertificateChain: fileSource(t.CertFile),
				PrivateKey:       fileSource(t.KeyFile),
				WatchedDirectory: watched(t.CertFile),
			},
		}})
	}
	for _, c := range e.Clusters {
		if c.TLS == nil {
			continue
		}
		out = append(out, &tlsv3.Secret{Name: authoritiesOf(c), Type: &tlsv3.Secret_ValidationContext{
			ValidationContext: &tlsv3.CertificateValidationContext{
				TrustedCa:        fileSource(c.TLS.CAFile),
				WatchedDirectory: watched(c.TLS.CAFile),
			},
		}})
	}
	slices.SortFunc(out, func(a, b *tlsv3.Secret) int { return cmp.Compare(a.Name, b.Name) })
	return out
}

func fileSource(file string) *corev3.DataSource {
	return &corev3.DataSource{Specifier: &corev3.DataSource_Filename{Filename: file}}
}

func watched(file string) *corev3.WatchedDirectory {
	return &corev3.WatchedDirectory{Path: path.Dir(file)}
}

// listenerTLS is nil for a listener without TLS. Until Envoy has read the
// certificate it closes connections; it never goes on without TLS.
func listenerTLS(p *packer, t *model.ListenerTLS) *corev3.TransportSocket {
	if t == nil {
		return nil
	}
	return transportSocket(p, &tlsv3.DownstreamTlsContext{
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsParams:                      tlsParameters(),
			AlpnProtocols:                  []string{"h2", "http/1.1"},
			TlsCertificateSdsSecretConfigs: []*tlsv3.SdsSecretConfig{{Name: listenerSecret, SdsConfig: adsSource()}},
		},
		// Callers prove who they are with a token.
		RequireClientCertificate: wrapperspb.Bool(false),
	})
}

// acceptTimeout bounds the handshake where there is one.
func acceptTimeout(t *model.ListenerTLS) *durationpb.Duration {
	if t == nil {
		return nil
	}
	return durationpb.New(handshakeTimeout)
}

// clusterTLS is nil for a cluster without TLS.
func clusterTLS(p *packer, c model.Cluster) *corev3.TransportSocket {
	if c.TLS == nil {
		return nil
	}
	kind, sni := tlsv3.SubjectAltNameMatcher_DNS, c.TLS.ServerName
	if (model.Address{Host: c.TLS.ServerName}).IsIP() {
		// An address is no server name (RFC 6066, section 3).
		kind, sni = tlsv3.SubjectAltNameMatcher_IP_ADDRESS, ""
	}
	return transportSocket(p, &tlsv3.UpstreamTlsContext{
		Sni: sni,
		CommonTlsContext: &tlsv3.CommonTlsContext{
			TlsParams: tlsParameters(),
			ValidationContextType: &tlsv3.CommonTlsContext_CombinedValidationContext{
				CombinedValidationContext: &tlsv3.CommonTlsContext_CombinedCertificateValidationContext{
					DefaultValidationContext: &tlsv3.CertificateValidationContext{
						MatchTypedSubjectAltNames: []*tlsv3.SubjectAltNameMatcher{{
							SanType: kind,
							Matcher: &matcherv3.StringMatcher{MatchPattern: &matcherv3.StringMatcher_Exact{Exact: c.TLS.ServerName}},
						}},
					},
					ValidationContextSdsSecretConfig: &tlsv3.SdsSecretConfig{Name: authoritiesOf(c), SdsConfig: adsSource()},
				},
			},
		},
	})
}

func transportSocket(p *packer, config proto.Message) *corev3.TransportSocket {
	return &corev3.TransportSocket{
		Name:       "envoy.transport_sockets.tls",
		ConfigType: &corev3.TransportSocket_TypedConfig{TypedConfig: p.any(config)},
	}
}
