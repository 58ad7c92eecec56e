package runs

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/services/runs/results"
)

// guarded is the handler as the process serves it, and a signer that it believes.
func (w *world) guarded() (http.Handler, *identity.Signer) {
	w.t.Helper()
	dir := w.t.TempDir()
	private, public := filepath.Join(dir, "identity.pem"), filepath.Join(dir, "public")
	if err := identity.GenerateKeyPair(private, public); err != nil {
		w.t.Fatal(err)
	}
	signer, err := identity.LoadSigner(private)
	if err != nil {
		w.t.Fatal(err)
	}
	v, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: public, Backend: backend})
	if err != nil {
		w.t.Fatal(err)
	}
	tracing, err := telemetry.NewTracing(w.t.Context(), telemetry.Options{Service: "test", Metrics: prometheus.NewRegistry()})
	if err != nil {
		w.t.Fatal(err)
	}
	return newHandler(w.server, v, func() error { return nil }, tracing), signer
}

// signed is an identity for an operation about the shop.
func signed(t testing.TB, s *identity.Signer, op string, change ...func(*identity.Claims)) string {
	t.Helper()
	c := *about(op)
	c.Issuer, c.Subject, c.Audience, c.ID = identity.Issuer, "someone", []string{backend}, "one-"+op
	c.IssuedAt, c.ExpiresAt = identity.Times(time.Now(), time.Minute)
	for _, f := range change {
		f(&c)
	}
	token, err := s.Sign(c)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestOnlyWhatPassedTheEdgeIsAnswered(t *testing.T) {
	w := newWorld(t)
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, w.now)}
	h, signer := w.guarded()
	_, foreign := w.guarded()
	path := "/v1/apps/shop/runs/" + uidOf(1)
	ask := func(method, target string, tokens ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequestWithContext(t.Context(), method, target, nil)
		r.Header[identity.Header] = tokens
		rec := httptest.NewRecorder()
		h.ServeHTTP(recorder{rec}, r)
		return rec
	}
	good := signed(t, signer, "getRun")
	for name, tokens := range map[string][]string{
		"no identity":                 nil,
		"two of them":                 {good, good},
		"one that others signed":      {signed(t, foreign, "getRun")},
		"one of another operation":    {signed(t, signer, "listRuns")},
		"one for another backend":     {signed(t, signer, "getRun", func(c *identity.Claims) { c.Audience[0] = "livehub" })},
		"one for another app":         {signed(t, signer, "getRun", func(c *identity.Claims) { c.App = "gate-api" })},
		"one without a namespace":     {signed(t, signer, "getRun", func(c *identity.Claims) { c.NamespaceUID = "" })},
		"one that is a caller's word": {"reader"},
	} {
		t.Run(name, func(t *testing.T) { w.refused(ask(http.MethodGet, path, tokens...), problem.EdgeUnauthorized) })
	}
	if len(w.archive.asked) > 0 {
		t.Errorf("the archive was asked for %q", w.archive.asked)
	}
	w.ok(ask(http.MethodGet, path, good), "Run")
	list := signed(t, signer, "listRuns")
	w.refused(ask(http.MethodGet, "/v1/apps/shop/runs?limit=1&limit=2", list), problem.BadRequest)
	w.refused(ask(http.MethodGet, "/v1/apps/shop/runs?limit=%zz", list), problem.BadRequest)
	for _, target := range []string{path + "/", "/v1/apps/shop//runs", "/v1/apps/shop/%72uns", "/metrics"} {
		w.refused(ask(http.MethodGet, target, good), problem.EdgeNotFound)
	}
	w.refused(ask(http.MethodPost, path, good), problem.EdgeNotFound)
	w.refused(ask(http.MethodHead, path, good), problem.EdgeNotFound)
	if got := ask(http.MethodGet, "/healthz"); got.Code != http.StatusOK {
		t.Errorf("the probe is %d", got.Code)
	}
}

func TestTheOperationsServedAreThoseOfTheContract(t *testing.T) {
	h, _ := newWorld(t).guarded()
	for _, op := range api.Operations() {
		path := strings.NewReplacer("{app}", "shop", "{taskRun}", "t", "{container}", "c", "{result}", "r", "{name}", "n", "{id}", "i", "{env}", "e", "{chainId}", "c").Replace(op.Path)
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, httptest.NewRequestWithContext(t.Context(), op.Method, path, nil))
		want := problem.EdgeNotFound
		if op.Backend == backend && !op.Planned {
			want = problem.EdgeUnauthorized // it is there, behind the identity
		}
		var body problem.Body
		if err := json.Unmarshal(rec.Body.Bytes(), &body); err != nil || body.Rule != want.ID {
			t.Errorf("%s: %s", op.ID, rec.Body)
		}
	}
}
