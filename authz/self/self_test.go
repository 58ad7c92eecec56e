package self_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/self"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/telemetry"
)

// backend is the handler and the signer that it trusts.
type backend struct {
	http.Handler
	signer *identity.Signer
	asked  *asked
}

func newBackend(t *testing.T) *backend {
	t.Helper()
	dir := t.TempDir()
	key, public := filepath.Join(dir, "key.pem"), filepath.Join(dir, "public")
	if err := identity.GenerateKeyPair(key, public); err != nil {
		t.Fatal(err)
	}
	signer, err := identity.LoadSigner(key)
	if err != nil {
		t.Fatal(err)
	}
	v, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: public, Backend: self.Backend})
	if err != nil {
		t.Fatal(err)
	}
	a := new(asked)
	return &backend{Handler: self.NewHandler(v, api.Operations(), a, new(telemetry.Tracing)), signer: signer, asked: a}
}

// asked stands in for what says who may call what.
type asked struct {
	app     string
	who     decision.Standing
	capable decision.Capable
	err     error
}

func (a *asked) Of(_ context.Context, s decision.Standing, app string) (decision.Capable, error) {
	a.who, a.app = s, app
	return a.capable, a.err
}

func (b *backend) call(t *testing.T, method, target, op string, change func(*identity.Claims)) *httptest.ResponseRecorder {
	t.Helper()
	issued, expires := identity.Times(time.Now(), time.Minute)
	c := identity.Claims{
		RegisteredClaims: jwt.RegisteredClaims{Subject: "tower", Audience: jwt.ClaimStrings{"authz"}, ID: "1", IssuedAt: issued, ExpiresAt: expires},
		Op:               op, Tier: "T0",
	}
	if change != nil {
		change(&c)
	}
	signed, err := b.signer.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
	r.Header.Set(identity.Header, signed)
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	return w
}

func TestWhoamiAnswersWhatTheIdentitySays(t *testing.T) {
	b := newBackend(t)
	for name, tc := range map[string]struct {
		who  identity.Who
		obo  string
		want string
	}{
		"a delegate for a person": {
			identity.Who{Groups: []string{"a", "b"}, Kind: "user", Delegate: true, Audiences: []string{"x"}},
			"ana",
			`{"audiences":["x"],"delegate":true,"groups":["a","b"],"kind":"user","onBehalfOf":"ana","username":"tower"}`,
		},
		"nobody in particular, without nulls": {
			identity.Who{Kind: "serviceAccount"},
			"",
			`{"audiences":[],"groups":[],"kind":"serviceAccount","username":"tower"}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			w := b.call(t, "GET", "/v1/whoami", "whoami", func(c *identity.Claims) { c.Who, c.OnBehalfOf = &tc.who, tc.obo })
			if w.Code != http.StatusOK || w.Body.String() != tc.want {
				t.Errorf("got %d %s", w.Code, w.Body)
			}
			if h := w.Header(); h.Get("Content-Type") != "application/json" || h.Get("Cache-Control") != "no-store" || h.Get("ETag") != "" {
				t.Errorf("headers %v", h)
			}
		})
	}
}

func TestWhoamiSaysWhatTheCallerMayCallAboutAnApp(t *testing.T) {
	b := newBackend(t)
	who := identity.Who{Kind: "serviceAccount", Groups: []string{"g"}, UID: "u", Extra: map[string][]string{"k": {"v"}}, Delegate: true, App: "shop"}
	ask := func(target string) *httptest.ResponseRecorder {
		return b.call(t, "GET", target, "whoami", func(c *identity.Claims) { c.Who, c.OnBehalfOf = &who, "ana" })
	}
	read, write := &operation.Operation{}, &operation.Operation{}
	read.ID, read.Tier, write.ID, write.Tier = "listLive", "T0", "cancelPipelineRun", "T1"
	b.asked.capable = decision.Capable{Namespace: "app-shop-cicd", Operations: []decision.Capability{
		{Operation: read}, {Operation: write, Refusal: problem.New(problem.AuthzDenied, "no").WithHint("ask")},
	}}
	// The app is the identity's, whatever the query says.
	w := ask("/v1/whoami?app=another")
	const want = `{"app":"shop","audiences":[],"delegate":true,"groups":["g"],"kind":"serviceAccount","namespace":"app-shop-cicd","onBehalfOf":"ana",` +
		`"operations":[{"allowed":true,"op":"listLive","tier":"T0"},{"allowed":false,"hint":"ask","op":"cancelPipelineRun","rule":"GP-AUTHZ-001","tier":"T1"}],"username":"tower"}`
	if w.Code != http.StatusOK || w.Body.String() != want {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	whole := authn.Restore(authn.Facts{Username: "tower", UID: "u", Groups: []string{"g"}, Extra: map[string][]string{"k": {"v"}}}, authn.ServiceAccount)
	if s := b.asked.who; b.asked.app != "shop" || s.Caller.Whole() != whole.Whole() || !s.Delegate || s.OnBehalfOf != "ana" {
		t.Errorf("asked about %s by %+v", b.asked.app, s)
	}
	b.asked.err = problem.New(problem.SourceFailed, "")
	if w := ask("/v1/whoami?app=shop"); w.Code != http.StatusBadGateway || rule(t, w) != "GP-API-502" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
	who.App, b.asked.app = "", ""
	if w := ask("/v1/whoami"); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "operations") || b.asked.app != "" {
		t.Errorf("without an app: %d %s", w.Code, w.Body)
	}
}

func TestWhoamiWithoutTheFactsIsAFailureAndNoGuess(t *testing.T) {
	if w := newBackend(t).call(t, "GET", "/v1/whoami", "whoami", nil); w.Code != http.StatusBadGateway || rule(t, w) != "GP-API-502" {
		t.Errorf("got %d %s", w.Code, w.Body)
	}
}

// rule: R006
func TestTheContractIsServedByteForByte(t *testing.T) {
	w := newBackend(t).call(t, "GET", "/v1/contract", "getContract", nil)
	if w.Code != http.StatusOK || !slices.Equal(w.Body.Bytes(), api.Contract()) || w.Header().Get("Content-Type") != "application/json" {
		t.Errorf("got %d %v %.100s", w.Code, w.Header(), w.Body)
	}
}

func rule(t *testing.T, w *httptest.ResponseRecorder) string {
	t.Helper()
	var b problem.Body
	if err := json.Unmarshal(w.Body.Bytes(), &b); err != nil {
		t.Fatalf("%s: %v", w.Body, err)
	}
	return b.Rule
}

func TestWhatDidNotPassTheEdgeIsNotAnswered(t *testing.T) {
	b := newBackend(t)
	anything := func(c *identity.Claims) { c.Who = &identity.Who{} }
	for name, w := range map[string]*httptest.ResponseRecorder{
		"another operation's identity": b.call(t, "GET", "/v1/whoami", "getContract", anything),
		"another backend's":            b.call(t, "GET", "/v1/whoami", "whoami", func(c *identity.Claims) { c.Audience = jwt.ClaimStrings{"livehub"} }),
		"another method":               b.call(t, "POST", "/v1/whoami", "whoami", anything),
		"HEAD":                         b.call(t, "HEAD", "/v1/whoami", "whoami", anything),
		"another path":                 b.call(t, "GET", "/v1/whoami/", "whoami", anything),
		"an operation of another":      b.call(t, "GET", "/v1/live", "listLiveRuns", anything),
		"an expired one": b.call(t, "GET", "/v1/whoami", "whoami", func(c *identity.Claims) {
			c.IssuedAt, c.ExpiresAt = identity.Times(time.Now().Add(-time.Hour), time.Minute)
		}),
	} {
		if w.Code != http.StatusUnauthorized || rule(t, w) != "GP-EDGE-401" {
			t.Errorf("%s: got %d %s", name, w.Code, w.Body)
		}
	}
	r := httptest.NewRequestWithContext(t.Context(), "GET", "/v1/contract", strings.NewReader(""))
	w := httptest.NewRecorder()
	b.ServeHTTP(w, r)
	if w.Code != http.StatusUnauthorized || rule(t, w) != "GP-EDGE-401" {
		t.Errorf("no identity: got %d %s", w.Code, w.Body)
	}
}
