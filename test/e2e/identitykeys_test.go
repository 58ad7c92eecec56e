package e2e_test

import (
	"crypto/rand"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/identity"
)

// rotationTime is many times what a rotation may take: the folder is read every
// 10 s, and a key's public half must be known for 30 s before it signs.
const rotationTime = 3 * time.Minute

// The keys of the identity are rotated under a running gateway as
// docs/operations.md says, and no call is refused meanwhile. Then the new key is
// stolen, and no identity that it signed gets in any more.
func TestTheKeyOfTheIdentityIsRotatedUnderCallers(t *testing.T) {
	t.Parallel()
	g := devtest.Gateway(t, devenv.GatewayConfig{APIServer: gw.APIServer, Redis: gw.Redis})
	private := filepath.Join(filepath.Dir(g.IdentityKeysDir()), "authz", "identity.pem")
	read := func() answer { return call(t, http.MethodGet, g.URL+"/v1/apps/gate-api/live", as("reader")) }
	pending := func() bool { return metric(t, g.Edges[0].AuthzMetrics, "glidepath_authz_identity_key_pending") == 1 }
	ok(t, read())
	if err := identity.GenerateKeyPair(private, g.IdentityKeysDir()); err != nil {
		t.Fatal(err)
	}
	serving := func(what string, f func() bool) {
		t.Helper()
		within(t, rotationTime, what, func() bool {
			ok(t, read())
			return f()
		})
	}
	serving("authz has seen the new key, and signs with the old one", pending)
	serving("the new key signs", func() bool { return !pending() })

	thief, err := identity.LoadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	if a := directly(t, g, thief); a.status != http.StatusOK {
		t.Fatalf("an identity of the key that signs: got %d %.200s", a.status, a.body)
	}
	stolen, err := filepath.Glob(filepath.Join(g.IdentityKeysDir(), "*.pem"))
	if err != nil || len(stolen) != 2 {
		t.Fatalf("the folder has %d keys, want 2: %v", len(stolen), err)
	}
	if err := identity.GenerateKeyPair(private, g.IdentityKeysDir()); err != nil {
		t.Fatal(err)
	}
	for _, file := range stolen {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
	within(t, rotationTime, "the stolen key is good for nothing", func() bool {
		return directly(t, g, thief).status == http.StatusUnauthorized
	})
	within(t, rotationTime, "calls are served with the third key", func() bool {
		a := read()
		if a.status != http.StatusOK {
			refused(t, a, 401, "GP-EDGE-401")
		}
		return a.status == http.StatusOK
	})
	if a := directly(t, g, thief); a.status != http.StatusUnauthorized {
		t.Errorf("the stolen key, once more: got %d %.200s", a.status, a.body)
	}
}

// directly calls a livehub past the edge, with an identity of the reader's that
// a signer makes.
func directly(t *testing.T, g *devenv.Gateway, signer *identity.Signer) answer {
	t.Helper()
	issued, expires := identity.Times(time.Now(), identity.MaxLifetime)
	token, err := signer.Sign(identity.Claims{
		RegisteredClaims: jwt.RegisteredClaims{
			Subject: username(t, "reader"), Audience: jwt.ClaimStrings{"livehub"}, IssuedAt: issued, ExpiresAt: expires, ID: rand.Text(),
		},
		Op: "listLiveRuns", Tier: "T0",
	})
	if err != nil {
		t.Fatal(err)
	}
	_, a, err := try(t.Context(), http.MethodGet, g.Livehubs[0].URL+"/v1/live", header(identity.Header, token))
	if err != nil {
		t.Fatal(err)
	}
	return a
}
