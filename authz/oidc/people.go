package oidc

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/internal/outbound"
)

// People are the parts by which people sign in. The zero value has none.
type People struct {
	// Issuers are the authenticators by issuer, as authn.ByIssuer takes them.
	Issuers map[string]authn.Authenticator

	keys      *jwks.Set
	transport *outbound.Transport
}

// NewPeople puts together what the settings say, which are valid.
func NewPeople(s Settings, reg prometheus.Registerer, m *jwks.Metrics) (*People, error) {
	if !s.Enabled() {
		return &People{}, nil
	}
	transport, err := newTransport(s)
	if err != nil {
		return nil, err
	}
	keys := jwks.New(jwks.Config{Name: "people", Source: source(s, transport), Metrics: m})
	allowed, err := NewAllowed(s.AllowedUsers)
	if err != nil {
		return nil, fmt.Errorf("reading the allowed users: %w", err)
	}
	a, err := New(Config{Issuer: s.Issuer, Audience: s.Audience, Allowed: allowed, Keys: keys, Metrics: reg})
	if err != nil {
		return nil, err
	}
	if !strings.HasPrefix(s.keysAt(), "https:") {
		slog.Warn("the keys of people's tokens are read without TLS: whoever can answer in the issuer's place can sign in as anyone", "issuer", s.Issuer)
	}
	return &People{Issuers: map[string]authn.Authenticator{s.Issuer: a}, keys: keys, transport: transport}, nil
}

// Run keeps the issuer's keys until ctx ends.
func (p *People) Run(ctx context.Context) {
	if p.keys == nil {
		return
	}
	p.keys.Run(ctx)
	p.transport.CloseIdleConnections()
}

func newTransport(s Settings) (*outbound.Transport, error) {
	server, err := outbound.NewSource("the issuer of people's tokens", s.Server)
	if err != nil {
		return nil, err
	}
	proxies, err := outbound.ProxiesFromEnvironment()
	if err != nil {
		return nil, fmt.Errorf("finding the way to the issuer of people's tokens: %w", err)
	}
	return server.Transport(proxies, outbound.Bounds{Header: jwks.FetchTimeout, Connections: 2}), nil
}

func source(s Settings, transport http.RoundTripper) jwks.Source {
	if s.JWKSURL != "" {
		return jwks.At(transport, s.JWKSURL)
	}
	return jwks.Discover(transport, s.Issuer)
}
