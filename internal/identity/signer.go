package identity

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// maxIDBytes bounds the id of an identity, since backends remember those of
// writes.
const maxIDBytes = 64

// Signer signs identities with one Ed25519 key. It is safe for concurrent use.
type Signer struct {
	key ed25519.PrivateKey
	kid string
}

// LoadSigner reads a PKCS #8 PEM file.
func LoadSigner(privateKeyFile string) (*Signer, error) {
	key, err := readPrivateKey(privateKeyFile)
	if err != nil {
		return nil, fmt.Errorf("loading the identity key: %w", err)
	}
	pub, ok := key.Public().(ed25519.PublicKey)
	if !ok {
		return nil, errors.New("loading the identity key: its public half is not Ed25519")
	}
	kid, err := keyID(pub)
	if err != nil {
		return nil, err
	}
	return &Signer{key: key, kid: kid}, nil
}

// KeyID names the key.
func (s *Signer) KeyID() string { return s.kid }

// Sign gives the token of c. It refuses claims that no verifier would take:
// without subject, audience, operation, id or times, or with a longer life
// than MaxLifetime.
func (s *Signer) Sign(c Claims) (string, error) {
	c.Issuer = Issuer
	if err := c.complete(); err != nil {
		return "", fmt.Errorf("signing an identity: %w", err)
	}
	t := jwt.NewWithClaims(jwt.SigningMethodEdDSA, c)
	t.Header["kid"] = s.kid
	signed, err := t.SignedString(s.key)
	if err != nil {
		return "", fmt.Errorf("signing an identity: %w", err)
	}
	return signed, nil
}

// complete says what keeps c from being an identity.
func (c *Claims) complete() error {
	switch {
	case c.Issuer != Issuer:
		return errors.New("wrong issuer")
	case c.Subject == "":
		return errors.New("no subject")
	case len(c.Audience) != 1 || c.Audience[0] == "":
		return errors.New("not exactly one audience")
	case c.Op == "" || c.Tier == "":
		return errors.New("no operation or tier")
	case c.ID == "" || len(c.ID) > maxIDBytes:
		return errors.New("no id, or too long a one")
	case c.IssuedAt == nil || c.ExpiresAt == nil:
		return errors.New("no times")
	case c.ExpiresAt.Sub(c.IssuedAt.Time) > MaxLifetime:
		return fmt.Errorf("lives longer than %s", MaxLifetime)
	case (c.App == "") != (c.Namespace == ""):
		return errors.New("an app without a namespace, or the other way round")
	}
	return nil
}

// Times gives the registered times of an identity that lives from now for d.
func Times(now time.Time, d time.Duration) (issuedAt, expiresAt *jwt.NumericDate) {
	return jwt.NewNumericDate(now), jwt.NewNumericDate(now.Add(d))
}
