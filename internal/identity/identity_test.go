package identity_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hangar.io/glidepath/internal/identity"
)

// keys is one signing key and the directory that verifiers read.
type keys struct{ private, publicDir string }

func newKeys(t testing.TB) keys {
	t.Helper()
	dir := t.TempDir()
	k := keys{private: filepath.Join(dir, "signer.pem"), publicDir: filepath.Join(dir, "public")}
	if err := identity.GenerateKeyPair(k.private, k.publicDir); err != nil {
		t.Fatal(err)
	}
	return k
}

func (k keys) signer(t testing.TB) *identity.Signer {
	t.Helper()
	s, err := identity.LoadSigner(k.private)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func (k keys) verifier(t testing.TB, backend string) *identity.Verifier {
	t.Helper()
	v, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: k.publicDir, Backend: backend})
	if err != nil {
		t.Fatal(err)
	}
	return v
}

// claims gives a read's identity that is right in everything.
func claims(change func(*identity.Claims)) identity.Claims {
	c := identity.Claims{Op: "listLive", Tier: "T0", App: "shop", Namespace: "app-shop-cicd", NamespaceUID: "u-1"}
	c.Subject = "system:serviceaccount:ci:reader"
	c.Audience = jwt.ClaimStrings{"livehub"}
	c.ID = "id-1"
	c.IssuedAt, c.ExpiresAt = identity.Times(time.Now(), identity.MaxLifetime)
	if change != nil {
		change(&c)
	}
	return c
}

type signer interface {
	Sign(identity.Claims) (string, error)
}

func sign(t testing.TB, s signer, c identity.Claims) string {
	t.Helper()
	token, err := s.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestABackendReadsExactlyWhatWasSigned(t *testing.T) {
	k := newKeys(t)
	want := claims(func(c *identity.Claims) { c.OnBehalfOf = "user:default/ana" })
	v := k.verifier(t, "livehub")
	token := sign(t, k.signer(t), want)
	for range 2 { // the second time out of the cache
		got, err := v.Verify(token)
		if err != nil {
			t.Fatal(err)
		}
		if got.Subject != want.Subject || got.OnBehalfOf != want.OnBehalfOf || got.Op != want.Op || got.Tier != want.Tier ||
			got.App != want.App || got.Namespace != want.Namespace || got.NamespaceUID != want.NamespaceUID {
			t.Errorf("got %+v, want %+v", got, want)
		}
	}
}

func TestASignerRefusesClaimsThatNoBackendWouldTake(t *testing.T) {
	s := newKeys(t).signer(t)
	for name, change := range map[string]func(*identity.Claims){
		"no subject":                 func(c *identity.Claims) { c.Subject = "" },
		"no audience":                func(c *identity.Claims) { c.Audience = nil },
		"two audiences":              func(c *identity.Claims) { c.Audience = jwt.ClaimStrings{"livehub", "writes"} },
		"no operation":               func(c *identity.Claims) { c.Op = "" },
		"no tier":                    func(c *identity.Claims) { c.Tier = "" },
		"no id":                      func(c *identity.Claims) { c.ID = "" },
		"no expiry":                  func(c *identity.Claims) { c.ExpiresAt = nil },
		"a life over the limit":      func(c *identity.Claims) { c.ExpiresAt = jwt.NewNumericDate(time.Now().Add(2 * time.Minute)) },
		"an app without a namespace": func(c *identity.Claims) { c.Namespace = "" },
		"a namespace without an app": func(c *identity.Claims) { c.App = "" },
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Sign(claims(change)); err == nil {
				t.Error("signed")
			}
		})
	}
}

func TestAVerifierRefuses(t *testing.T) {
	k, other := newKeys(t), newKeys(t)
	pub, priv, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	good := sign(t, k.signer(t), claims(nil))
	raw := func(method jwt.SigningMethod, key any, kid string) string {
		c := claims(nil)
		c.Issuer = identity.Issuer
		tok := jwt.NewWithClaims(method, c)
		if kid != "" {
			tok.Header["kid"] = kid
		}
		s, err := tok.SignedString(key)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	parts := strings.Split(good, ".")
	tokens := map[string]string{
		"nothing":                 "",
		"what is no token":        "a.b.c",
		"another key's signature": sign(t, other.signer(t), claims(nil)),
		"another backend's token": sign(t, k.signer(t), claims(func(c *identity.Claims) { c.Audience = jwt.ClaimStrings{"writes"} })),
		"an expired token": sign(t, k.signer(t), claims(func(c *identity.Claims) {
			c.IssuedAt, c.ExpiresAt = identity.Times(time.Now().Add(-70*time.Second), 60*time.Second)
		})),
		"a token of the future": sign(t, k.signer(t), claims(func(c *identity.Claims) {
			c.IssuedAt, c.ExpiresAt = identity.Times(time.Now().Add(time.Minute), 60*time.Second)
		})),
		"alg none":                        raw(jwt.SigningMethodNone, jwt.UnsafeAllowNoneSignatureType, ""),
		"an HMAC under the public key":    raw(jwt.SigningMethodHS256, []byte(pub), ""),
		"a key that nobody mounted":       raw(jwt.SigningMethodEdDSA, priv, "0123456789abcdef"),
		"a signature without a key id":    raw(jwt.SigningMethodEdDSA, priv, ""),
		"a token whose claims were moved": parts[0] + "." + strings.Split(sign(t, k.signer(t), claims(func(c *identity.Claims) { c.App = "gate-api" })), ".")[1] + "." + parts[2],
		"a token larger than any of ours": strings.Repeat("a", 64<<10),
	}
	v := k.verifier(t, "livehub")
	if _, err := v.Verify(good); err != nil {
		t.Fatalf("the good token: %v", err)
	}
	for name, token := range tokens {
		t.Run(name, func(t *testing.T) {
			if _, err := v.Verify(token); err == nil {
				t.Error("accepted")
			}
		})
	}
}

func TestAVerifiedTokenEndsWithItsExpiry(t *testing.T) {
	k := newKeys(t)
	synctest.Test(t, func(t *testing.T) {
		v := k.verifier(t, "livehub")
		token := sign(t, k.signer(t), claims(nil))
		if _, err := v.Verify(token); err != nil {
			t.Fatal(err)
		}
		time.Sleep(identity.MaxLifetime + identity.Leeway - time.Second)
		if _, err := v.Verify(token); err != nil {
			t.Fatalf("within the leeway: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := v.Verify(token); err == nil {
			t.Error("accepted after its expiry, out of the cache")
		}
	})
}

func TestKeysAreReloadedWithoutARestart(t *testing.T) {
	k := newKeys(t)
	first := k.signer(t)
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		v := k.verifier(t, "livehub")
		go v.Run(ctx)
		old, err := filepath.Glob(filepath.Join(k.publicDir, "*.pem"))
		if err != nil || len(old) != 1 {
			t.Fatal(old, err)
		}
		if err := identity.GenerateKeyPair(k.private, k.publicDir); err != nil {
			t.Fatal(err)
		}
		second := k.signer(t)
		time.Sleep(11 * time.Second)
		oldToken := sign(t, first, claims(nil))
		for name, token := range map[string]string{"the old key": oldToken, "the new key": sign(t, second, claims(nil))} {
			if _, err := v.Verify(token); err != nil {
				t.Errorf("%s, while both are mounted: %v", name, err)
			}
		}
		if err := os.Remove(old[0]); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if _, err := v.Verify(oldToken); err == nil {
			t.Error("a removed key's token is still accepted, out of the cache")
		}
		// A broken file must not take the good keys away.
		if err := os.WriteFile(filepath.Join(k.publicDir, "broken.pem"), []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if _, err := v.Verify(sign(t, second, claims(nil))); err != nil {
			t.Errorf("after a reload that failed: %v", err)
		}
	})
}

func TestKeyFilesThatAreNoneAreRefusedWithoutTheirContent(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "k.pem")
	if err := os.WriteFile(file, []byte("-----BEGIN PRIVATE KEY-----\nc2VjcmV0\n-----END PRIVATE KEY-----\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := identity.LoadSigner(file)
	if err == nil || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "c2VjcmV0") {
		t.Errorf("got %v", err)
	}
	key := filepath.Join(dir, "signer")
	if err := identity.GenerateKeyPair(key, t.TempDir()); err != nil {
		t.Fatal(err)
	}
	pem, err := os.ReadFile(key)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(key, append(pem, make([]byte, 4<<10)...), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := identity.LoadSigner(key); err == nil || !strings.Contains(err.Error(), "larger than") {
		t.Errorf("a key and far too much after it: %v", err)
	}
	if _, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: dir, Backend: "livehub"}); err == nil {
		t.Error("a private key taken for a public one")
	}
	if _, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: t.TempDir(), Backend: "livehub"}); err == nil {
		t.Error("a verifier without any key")
	}
	if _, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: newKeys(t).publicDir}); err == nil {
		t.Error("a verifier for no backend")
	}
}

func TestOnlyTheDecidedCallReachesTheHandler(t *testing.T) {
	k := newKeys(t)
	v := k.verifier(t, "livehub")
	s := k.signer(t)
	read := sign(t, s, claims(nil))
	target := "/v1/apps/shop/pipelineruns/a/cancel?dryRun=true"
	write := sign(t, s, claims(func(c *identity.Claims) {
		c.Op, c.Tier, c.Method, c.TargetHash = "cancelPipelineRun", "T1", "POST", identity.HashTarget(target)
	}))
	unbound := sign(t, s, claims(func(c *identity.Claims) { c.Op, c.Tier = "cancelPipelineRun", "T1" }))
	for _, tc := range []struct {
		name, method, target, op string
		tokens                   []string
		allowed                  bool
	}{
		{"a read with its identity", "GET", "/v1/apps/shop/live", "listLive", []string{read}, true},
		{"a call round the edge", "GET", "/v1/apps/shop/live", "listLive", nil, false},
		{"an identity for another operation", "GET", "/v1/live", "listLiveRuns", []string{read}, false},
		{"a path that is no operation", "GET", "/v1/x", "", []string{read}, false},
		{"two identities", "GET", "/v1/apps/shop/live", "listLive", []string{read, read}, false},
		{"a write with its identity", "POST", target, "cancelPipelineRun", []string{write}, true},
		{"a write with another query", "POST", "/v1/apps/shop/pipelineruns/a/cancel", "cancelPipelineRun", []string{write}, false},
		{"a write with another method", "PUT", target, "cancelPipelineRun", []string{write}, false},
		{"a write whose identity is bound to nothing", "POST", target, "cancelPipelineRun", []string{unbound}, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			reached := false
			h := identity.Require(v, func(*http.Request) string { return tc.op }, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				_, reached = identity.FromContext(r.Context())
				if r.Header.Get(identity.Header) != "" {
					t.Error("the handler sees the token itself")
				}
			}))
			r := httptest.NewRequest(tc.method, tc.target, nil)
			for _, token := range tc.tokens {
				r.Header.Add(identity.Header, token)
			}
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if reached != tc.allowed {
				t.Errorf("reached the handler: %v, want %v", reached, tc.allowed)
			}
			if !tc.allowed && (w.Code != http.StatusUnauthorized || !strings.Contains(w.Body.String(), `"GP-EDGE-401"`)) {
				t.Errorf("answer %d %s, want 401 GP-EDGE-401", w.Code, w.Body)
			}
		})
	}
}

func TestNoIdentityInAFreshContext(t *testing.T) {
	if _, ok := identity.FromContext(t.Context()); ok {
		t.Error("an identity from nowhere")
	}
}

func BenchmarkVerify(b *testing.B) {
	dir := b.TempDir()
	private, public := filepath.Join(dir, "signer.pem"), filepath.Join(dir, "public")
	if err := identity.GenerateKeyPair(private, public); err != nil {
		b.Fatal(err)
	}
	s, err := identity.LoadSigner(private)
	if err != nil {
		b.Fatal(err)
	}
	v, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: public, Backend: "livehub"})
	if err != nil {
		b.Fatal(err)
	}
	token, err := s.Sign(claims(nil))
	if err != nil {
		b.Fatal(err)
	}
	b.Run("seen before", func(b *testing.B) {
		for b.Loop() {
			if _, err := v.Verify(token); err != nil {
				b.Fatal(err)
			}
		}
	})
}
