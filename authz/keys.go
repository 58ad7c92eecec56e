package authz

import (
	"crypto/rand"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hangar.io/glidepath/authz/self"
	"hangar.io/glidepath/internal/identity"
)

// keys are the two halves of identities in this process.
type keys struct {
	signer   *identity.Signer
	verifier *identity.Verifier
}

// loadKeys reads both and tries them on each other: a signer whose public key
// nobody has would have every call that it allows refused by its backend.
func loadKeys(c Config) (*keys, error) {
	signer, err := identity.LoadSigner(c.IdentityKey)
	if err != nil {
		return nil, err
	}
	verifier, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: c.IdentityKeysDir, Backend: self.Backend})
	if err != nil {
		return nil, err
	}
	issued, expires := identity.Times(time.Now(), time.Second)
	trial, err := signer.Sign(identity.Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject: "trial", Audience: jwt.ClaimStrings{self.Backend}, ID: rand.Text(), IssuedAt: issued, ExpiresAt: expires,
		},
		Op: "trial", Tier: "T0",
	})
	if err != nil {
		return nil, err
	}
	if _, err := verifier.Verify(trial); err != nil {
		return nil, fmt.Errorf("%s does not hold the public key of %s: %w", c.IdentityKeysDir, c.IdentityKey, err)
	}
	return &keys{signer: signer, verifier: verifier}, nil
}
