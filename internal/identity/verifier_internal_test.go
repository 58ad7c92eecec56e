package identity

import (
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

func TestAVerifiedTokenIsKeptUnlessItIsLarge(t *testing.T) {
	dir := t.TempDir()
	key, public := filepath.Join(dir, "key.pem"), filepath.Join(dir, "public")
	if err := GenerateKeyPair(key, public); err != nil {
		t.Fatal(err)
	}
	signer, err := LoadSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	v, err := NewVerifier(VerifierConfig{KeysDir: public, Backend: "authz"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ groupBytes, kept int }{{maxKeptBytes, 0}, {100, 1}} {
		issued, expires := Times(time.Now(), time.Minute)
		token, err := signer.Sign(Claims{
			RegisteredClaims: jwt.RegisteredClaims{Subject: "a", Audience: jwt.ClaimStrings{"authz"}, ID: "1", IssuedAt: issued, ExpiresAt: expires},
			Op:               "whoami", Tier: "T0", Who: &Who{Groups: []string{strings.Repeat("g", c.groupBytes)}},
		})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := v.Verify(token); err != nil {
				t.Fatalf("a token of %d bytes: %v", len(token), err)
			}
		}
		if got := v.verified.Len(); got != c.kept {
			t.Errorf("with a token of %d bytes %d are kept, want %d", len(token), got, c.kept)
		}
	}
}
