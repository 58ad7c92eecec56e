package apifake

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"net/http"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// The paths where an API server tells about the tokens that it issues.
const (
	Configuration = "/.well-known/openid-configuration"
	Keys          = "/openid/v1/jwks"
)

// issuer is what the API server publishes of the tokens that it issues.
type issuer struct {
	name string
	keys jose.JSONWebKeySet
}

// SigningKey signs tokens as an API server does.
type SigningKey struct {
	ID      string
	private *ecdsa.PrivateKey
}

// NewSigningKey makes one.
func NewSigningKey(t testing.TB, id string) SigningKey {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return SigningKey{ID: id, private: private}
}

// Sign gives a token of these claims.
func (k SigningKey) Sign(t testing.TB, claims jwt.MapClaims) string {
	t.Helper()
	tok := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	tok.Header["kid"] = k.ID
	signed, err := tok.SignedString(k.private)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// Publish has the API server tell its issuer and the keys that it signs with.
func (s *Server) Publish(name string, keys ...SigningKey) {
	i := &issuer{name: name}
	for _, k := range keys {
		i.keys.Keys = append(i.keys.Keys, jose.JSONWebKey{Key: k.private.Public(), KeyID: k.ID, Algorithm: "ES256", Use: "sig"})
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.issuer = i
}

func (s *Server) publish(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	i := s.issuer
	s.mu.Unlock()
	switch {
	case i == nil:
		refuse(w, http.StatusNotFound, "the server could not find the requested resource")
	case r.URL.Path == Configuration:
		// The address of the keys is one for others.
		answer(w, http.StatusOK, map[string]string{"issuer": i.name, "jwks_uri": "https://keys.invalid/openid/v1/jwks"})
	default:
		answer(w, http.StatusOK, i.keys)
	}
}
