// Package provider is an OpenID Connect provider for development and tests: it
// stands in for a Dex in front of GitHub. It signs people in by the device flow,
// on a page where one picks who to be; there are no passwords.
package provider

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// What the provider has in common with the Dex that it stands in for.
const (
	// Client is the public client of the gateway: no secret, device flow alone.
	Client = "glidepath-api"
	// TokenLife is how long an ID token is good.
	TokenLife = time.Hour

	path     = "/dex"
	codeLife = 5 * time.Minute
)

// Person is somebody who can sign in.
type Person struct {
	// Login is the preferred_username; UserID the account at GitHub.
	Login, Name, UserID string
}

func (p Person) subject() string { return "gh-" + p.UserID }

// Config says what a provider is like.
type Config struct {
	// Addr is host:port to listen on.
	Addr   string
	People []Person
	// Interval is the least time between two polls of a device; 0 is five seconds.
	Interval time.Duration
}

// Provider is a running provider. It is safe for concurrent use.
type Provider struct {
	// Issuer is its URL, as tokens name it.
	Issuer string

	people   []Person
	interval time.Duration
	server   *http.Server
	served   chan error

	mu      sync.Mutex
	keys    []*signingKey // the last one signs
	devices map[string]*device
}

// Start starts a provider. The caller stops it.
func Start(ctx context.Context, c Config) (*Provider, error) {
	if c.Interval == 0 {
		c.Interval = 5 * time.Second
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", c.Addr)
	if err != nil {
		return nil, fmt.Errorf("starting a provider of identities: %w", err)
	}
	p := &Provider{
		Issuer: "http://" + l.Addr().String() + path,
		people: c.People, interval: c.Interval, served: make(chan error, 1), devices: map[string]*device{},
	}
	handler, err := p.handler()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("starting a provider of identities: %w", err), l.Close())
	}
	p.server = &http.Server{Handler: handler, ReadHeaderTimeout: 5 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0)}
	go func() { p.served <- p.server.Serve(l) }()
	return p, nil
}

// Stop ends the provider.
func (p *Provider) Stop() {
	_ = p.server.Close()
	<-p.served
}

func (p *Provider) handler() (http.Handler, error) {
	if err := p.Rotate(); err != nil {
		return nil, err
	}
	oidc, err := op.NewProvider(&op.Config{
		SupportedScopes: []string{"openid", "email", "groups", "profile", "offline_access"},
		SupportedClaims: []string{"iss", "sub", "aud", "iat", "exp", "email", "email_verified", "locale", "name", "preferred_username", "at_hash", "groups", "federated_claims"},
		DeviceAuthorization: op.DeviceAuthorizationConfig{
			Lifetime: codeLife, PollInterval: p.interval, UserFormPath: path + "/device", UserCode: op.UserCodeBase20,
		},
	}, storage{p: p}, op.StaticIssuer(p.Issuer), op.WithAllowInsecure(), op.WithLogger(slog.New(slog.DiscardHandler)),
		op.WithCustomTokenEndpoint(op.NewEndpoint("token")), op.WithCustomKeysEndpoint(op.NewEndpoint("keys")),
		op.WithCustomDeviceAuthorizationEndpoint(op.NewEndpoint("device/code")))
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+path+"/device", p.page)
	mux.HandleFunc("POST "+path+"/device", p.decide)
	mux.Handle(path+"/", http.StripPrefix(path, oidc))
	return mux, nil
}

// Rotate makes a new key and signs with it from now on. The keys before it stay
// published.
func (p *Provider) Rotate() error {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		return fmt.Errorf("making a key: %w", err)
	}
	sum := sha256.Sum256(private.N.Bytes())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.keys = append(p.keys, &signingKey{id: hex.EncodeToString(sum[:])[:40], private: private})
	return nil
}

func (p *Provider) current() *signingKey {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.keys[len(p.keys)-1]
}

// Token gives an ID token for a person without the device flow. Claims replace
// what the provider would say; a nil takes a claim away.
func (p *Provider) Token(login string, claims map[string]any) (string, error) {
	person, ok := p.person(login)
	if !ok {
		return "", fmt.Errorf("signing in %s: no such person", login)
	}
	now := time.Now()
	c := jwt.MapClaims{
		"iss": p.Issuer, "aud": Client, "sub": person.subject(), "iat": now.Unix(), "exp": now.Add(TokenLife).Unix(),
		"name": person.Name, "preferred_username": person.Login,
		"federated_claims": map[string]string{"connector_id": "github", "user_id": person.UserID},
	}
	maps.Copy(c, claims)
	maps.DeleteFunc(c, func(_ string, v any) bool { return v == nil })
	key := p.current()
	t := jwt.NewWithClaims(jwt.SigningMethodRS256, c)
	t.Header["kid"] = key.id
	return t.SignedString(key.private)
}

func (p *Provider) person(login string) (Person, bool) {
	for _, one := range p.people {
		if one.Login == login {
			return one, true
		}
	}
	return Person{}, false
}

// Approve says yes, in the person's name, to the device with this user code, as
// somebody would on the page.
func (p *Provider) Approve(ctx context.Context, userCode, login string) error {
	return p.answer(ctx, url.Values{"user_code": {userCode}, "person": {login}})
}

// Deny says no to it.
func (p *Provider) Deny(ctx context.Context, userCode string) error {
	return p.answer(ctx, url.Values{"user_code": {userCode}, "deny": {"1"}})
}
