package jwks

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/golang-jwt/jwt/v5"
)

// Bounds of what an issuer may say.
const (
	maxKeys = 64
	maxKid  = 256
	// The sizes of RSA keys that are used: a smaller one can be broken, a larger
	// one makes every verification slow.
	minRSABits = 2048
	maxRSABits = 4096
)

// methods are the algorithms that are accepted. "none" and the symmetric ones
// are not among them, so that no token can choose them.
var methods = map[string]jwt.SigningMethod{
	"RS256": jwt.SigningMethodRS256, "RS384": jwt.SigningMethodRS384, "RS512": jwt.SigningMethodRS512,
	"PS256": jwt.SigningMethodPS256, "PS384": jwt.SigningMethodPS384, "PS512": jwt.SigningMethodPS512,
	"ES256": jwt.SigningMethodES256, "ES384": jwt.SigningMethodES384, "ES512": jwt.SigningMethodES512,
	"EdDSA": jwt.SigningMethodEdDSA,
}

// key is one public key and the algorithms that it may be used with.
type key struct {
	public any
	algs   []string
}

// keyring is what one reading gave. It is not changed once it is in force. A nil
// keyring has no keys.
type keyring struct {
	byKid    map[string][]key
	unusable int // keys of the issuer that are left out
	read     time.Time
	raw      string // what it was made of
}

func load(ctx context.Context, s Source) (*keyring, error) {
	raw, err := s.Fetch(ctx)
	if err != nil {
		return nil, err
	}
	return newKeyring(raw)
}

// newKeyring reads a JWK Set (RFC 7517). Keys that cannot be used here are left
// out, as the RFC says. A set without any is an answer too: nothing is accepted.
func newKeyring(raw []byte) (*keyring, error) {
	var set struct {
		Keys *[]jsontext.Value `json:"keys"`
	}
	// As everywhere in this package the case of names counts and no name may
	// stand twice.
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("reading the keys: %w", errors.New("not the JSON of a key set"))
	}
	if set.Keys == nil {
		return nil, errors.New("reading the keys: no key set")
	}
	if n := len(*set.Keys); n > maxKeys {
		return nil, fmt.Errorf("reading the keys: %d of them, and at most %d are read", n, maxKeys)
	}
	ring := &keyring{byKid: map[string][]key{}, raw: string(raw)}
	for _, one := range *set.Keys {
		kid, k, err := readKey(one)
		if err != nil {
			ring.unusable++
			continue
		}
		ring.byKid[kid] = append(ring.byKid[kid], k)
	}
	return ring, nil
}

// readKey reads one key, or says why it is of no use.
func readKey(raw jsontext.Value) (string, key, error) {
	var meta struct {
		Operations []string `json:"key_ops"`
	}
	if err := json.Unmarshal(raw, &meta); err != nil {
		return "", key{}, errors.New("not the JSON of a key")
	}
	var jwk jose.JSONWebKey
	if err := jwk.UnmarshalJSON(raw); err != nil {
		return "", key{}, fmt.Errorf("reading a key: %w", err)
	}
	switch {
	case jwk.KeyID == "" || len(jwk.KeyID) > maxKid:
		return "", key{}, errors.New("a key without a name, or with a long one")
	case jwk.Use != "" && jwk.Use != "sig":
		return "", key{}, errors.New("a key that is not for signatures")
	case meta.Operations != nil && !slices.Contains(meta.Operations, "verify"):
		return "", key{}, errors.New("a key that does not verify")
	}
	algs := algorithms(jwk.Key)
	if jwk.Algorithm != "" {
		algs = slices.DeleteFunc(algs, func(a string) bool { return a != jwk.Algorithm })
	}
	if len(algs) == 0 {
		return "", key{}, errors.New("a key of no algorithm that is accepted")
	}
	return jwk.KeyID, key{public: jwk.Key, algs: algs}, nil
}

// algorithms says what a public key of this kind is good for. A private or a
// secret key, which has no business in a public place, is good for nothing.
func algorithms(public any) []string {
	switch k := public.(type) {
	case *rsa.PublicKey:
		if bits := k.N.BitLen(); bits < minRSABits || bits > maxRSABits {
			return nil
		}
		return []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512"}
	case *ecdsa.PublicKey:
		switch k.Curve {
		case elliptic.P256():
			return []string{"ES256"}
		case elliptic.P384():
			return []string{"ES384"}
		case elliptic.P521():
			return []string{"ES512"}
		}
	case ed25519.PublicKey:
		return []string{"EdDSA"}
	}
	return nil
}

// verify gives the payload of a token that one of the keys of its kid signed.
func (r *keyring) verify(s *signed) ([]byte, error) {
	for _, k := range r.byKid[s.kid] {
		if !slices.Contains(k.algs, s.alg) {
			continue
		}
		if methods[s.alg].Verify(s.input, s.signature, k.public) == nil {
			return s.payload, nil
		}
	}
	return nil, ErrSignature
}

func (r *keyring) knows(kid string) bool { return r != nil && len(r.byKid[kid]) > 0 }

func (r *keyring) size() int {
	if r == nil {
		return 0
	}
	return len(r.byKid)
}

func (r *keyring) names() []string {
	if r == nil {
		return nil
	}
	return slices.Sorted(maps.Keys(r.byKid))
}

func (r *keyring) same(o *keyring) bool { return o != nil && r.raw == o.raw }
