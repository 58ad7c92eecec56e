package identity

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	// reloadEvery is how soon a new or removed key file is in force.
	reloadEvery = 10 * time.Second
	// verifiedEntries bounds the cache of verified tokens. Reads of one caller
	// share a token for half its life, so a few thousand cover many callers.
	verifiedEntries = 4096
	// maxKeptBytes bounds one of them, so that the cache is bounded in bytes
	// too. A larger one is whoami's, and is verified each time.
	maxKeptBytes = 8 << 10
	// maxTokenBytes bounds what is parsed; whoami's token carries the
	// caller's groups and is the largest.
	maxTokenBytes = 48 << 10
)

// VerifierConfig says which identities a backend takes.
type VerifierConfig struct {
	// KeysDir holds authz's public keys, one SPKI PEM file (*.pem) each.
	KeysDir string
	// Backend is the audience that every identity must name.
	Backend string
	// Shared is what all replicas of the backend remember of the identities of
	// writes, each of which is good for one call. Without it each replica
	// remembers by itself, which is enough where there is one.
	Shared Once
}

// Verifier verifies identities for one backend. It is safe for concurrent use.
type Verifier struct {
	cfg      VerifierConfig
	parser   *jwt.Parser
	verified *lru.Cache[string, *Claims]
	used     used
	current  atomic.Pointer[map[string]ed25519.PublicKey]
}

// NewVerifier reads the keys once; Run keeps them current.
func NewVerifier(cfg VerifierConfig) (*Verifier, error) {
	if cfg.Backend == "" {
		return nil, errors.New("verifying identities: no backend named")
	}
	cache, err := lru.New[string, *Claims](verifiedEntries)
	if err != nil {
		return nil, fmt.Errorf("verifying identities: %w", err)
	}
	v := &Verifier{
		cfg:      cfg,
		verified: cache,
		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{jwt.SigningMethodEdDSA.Alg()}),
			jwt.WithIssuer(Issuer),
			jwt.WithAudience(cfg.Backend),
			jwt.WithExpirationRequired(),
			jwt.WithIssuedAt(),
			jwt.WithLeeway(Leeway),
		),
	}
	keys, err := readPublicKeys(cfg.KeysDir)
	if err != nil {
		return nil, fmt.Errorf("verifying identities: %w", err)
	}
	v.current.Store(&keys)
	return v, nil
}

// Run reloads the keys until ctx ends. A reload that fails keeps the keys that
// are in force and says so.
func (v *Verifier) Run(ctx context.Context) {
	tick := time.NewTicker(reloadEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			v.reload(ctx)
		}
	}
}

func (v *Verifier) reload(ctx context.Context) {
	keys, err := readPublicKeys(v.cfg.KeysDir)
	if err != nil {
		slog.ErrorContext(ctx, "identity keys not reloaded, the last ones stay", "error", err)
		return
	}
	if sameKeys(keys, *v.current.Load()) {
		return
	}
	v.current.Store(&keys)
	// What a removed key signed must not outlive it.
	v.verified.Purge()
	slog.InfoContext(ctx, "identity keys reloaded", "keys", len(keys))
}

func sameKeys(a, b map[string]ed25519.PublicKey) bool {
	if len(a) != len(b) {
		return false
	}
	for id := range a {
		// The id is a digest of the key.
		if _, ok := b[id]; !ok {
			return false
		}
	}
	return true
}

// Verify gives the claims of a token that authz signed for this backend and
// that is in force now. A token seen before costs a look-up and not a
// signature. The claims are shared: read them only.
func (v *Verifier) Verify(token string) (*Claims, error) {
	if c, ok := v.verified.Get(token); ok {
		if time.Now().After(c.ExpiresAt.Add(Leeway)) {
			v.verified.Remove(token)
			return nil, fmt.Errorf("verifying an identity: %w", jwt.ErrTokenExpired)
		}
		return c, nil
	}
	if len(token) > maxTokenBytes {
		return nil, errors.New("verifying an identity: too large")
	}
	keys := v.current.Load()
	claims := new(Claims)
	if _, err := v.parser.ParseWithClaims(token, claims, keyByID(*keys)); err != nil {
		return nil, fmt.Errorf("verifying an identity: %w", timed(err, claims))
	}
	if err := claims.complete(); err != nil {
		return nil, fmt.Errorf("verifying an identity: %w", err)
	}
	// A write's comes once. The keys may have changed meanwhile, and one be gone.
	if len(token) <= maxKeptBytes && !claims.write() {
		v.verified.Add(token, claims)
		// Asked afterwards: a reload stores its keys before it empties the memory, so one of the two sees the other.
		if v.current.Load() != keys {
			v.verified.Remove(token)
		}
	}
	return claims, nil
}

func keyByID(keys map[string]ed25519.PublicKey) jwt.Keyfunc {
	return func(t *jwt.Token) (any, error) {
		kid, ok := t.Header["kid"].(string)
		if !ok {
			return nil, errors.New("no key id")
		}
		key, ok := keys[kid]
		if !ok {
			return nil, errors.New("unknown key id")
		}
		return key, nil
	}
}
