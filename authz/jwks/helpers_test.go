package jwks_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
	"go.uber.org/goleak"

	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/authz/token"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// pair is a key of an issuer.
type pair struct {
	kid, alg string
	private  crypto.Signer
}

func newPair(t testing.TB, kid, alg string) pair {
	t.Helper()
	var private crypto.Signer
	var err error
	switch alg {
	case "ES256":
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	case "ES384":
		private, err = ecdsa.GenerateKey(elliptic.P384(), rand.Reader)
	case "ES512":
		private, err = ecdsa.GenerateKey(elliptic.P521(), rand.Reader)
	case "EdDSA":
		_, private, err = ed25519.GenerateKey(rand.Reader)
	default:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	}
	if err != nil {
		t.Fatal(err)
	}
	return pair{kid: kid, alg: alg, private: private}
}

// public is the key as its issuer publishes it.
func (p pair) public() jose.JSONWebKey {
	return jose.JSONWebKey{Key: p.private.Public(), KeyID: p.kid, Algorithm: p.alg, Use: "sig"}
}

// sign makes a token of the key, with a header that change may alter.
func (p pair) sign(t testing.TB, change func(header map[string]any)) token.Token {
	t.Helper()
	out := jwt.NewWithClaims(jwt.GetSigningMethod(p.alg), jwt.MapClaims{"sub": "jo"})
	out.Header["kid"] = p.kid
	if change != nil {
		change(out.Header)
	}
	s, err := out.SignedString(p.private)
	if err != nil {
		t.Fatal(err)
	}
	return bearer(t, s)
}

type sent string

func (s sent) Get(name string) (string, int) {
	if name != token.DirectHeader {
		return "", 0
	}
	return "Bearer " + string(s), 1
}

func bearer(t testing.TB, s string) token.Token {
	t.Helper()
	tok, err := token.FromHeaders(sent(s))
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func set(t testing.TB, keys ...jose.JSONWebKey) []byte {
	t.Helper()
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// server is a source that tests change, and that counts.
type server struct {
	mu    sync.Mutex
	body  []byte
	err   error
	takes time.Duration
	asked int
}

var errAway = errors.New("nobody there")

func (s *server) Fetch(ctx context.Context) ([]byte, error) {
	s.mu.Lock()
	s.asked++
	body, err, takes := s.body, s.err, s.takes
	s.mu.Unlock()
	if takes > 0 {
		select {
		case <-time.After(takes):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return body, err
}

func (s *server) becomes(body []byte, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.body, s.err = body, err
}

func (s *server) slow(takes time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.takes = takes
}

func (s *server) readings() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.asked
}

// start runs a key set for the length of a test.
func start(t testing.TB, source jwks.Source, m *jwks.Metrics) *jwks.Set {
	t.Helper()
	keys := jwks.New(jwks.Config{Name: "test", Source: source, Metrics: m})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		keys.Run(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
	return keys
}
