package e2e_test

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/standin/recorder"
)

// Whatever is called, by whom, spelled how, and beside what: each request that
// reaches a backend carries the identity of exactly what was decided, for what
// the backend will read from the request, and nothing reaches one that no right
// allows. GLIDEPATH_SEED repeats a run.
func TestABackendIsToldExactlyWhatWasDecided(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	if text := os.Getenv("GLIDEPATH_SEED"); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("GLIDEPATH_SEED=%d", seed)
	const calls, callers = 900, 6
	g := guesser{rand.New(rand.NewPCG(seed, 0))}
	guesses := make([]guess, calls)
	for i := range guesses {
		guesses[i] = g.guess(i)
	}
	planned.Reset()
	answers := make([]answer, calls)
	var wg sync.WaitGroup
	for first := range callers {
		wg.Go(func() {
			for i := first; i < calls; i += callers {
				a, err := guesses[i].do(t)
				if err != nil {
					t.Errorf("%d: %s %s: %v", i, guesses[i].op.Method, guesses[i].target, err)
				}
				answers[i] = a
			}
		})
	}
	wg.Wait()
	o := newOracle(t)
	for _, r := range planned.Requests() {
		o.arrived(t, guesses, r)
	}
	lines, passed := byTrace(t), 0
	for i, guess := range guesses {
		o.answered(t, guess, answers[i], lines)
		if o.reached[i] > 0 {
			passed++
		}
	}
	t.Logf("%d of %d calls reached a backend", passed, calls)
	if passed < calls/50 || passed > calls*3/4 {
		t.Errorf("%d of %d calls reached a backend: little was tried", passed, calls)
	}
}

// oracle knows what a backend must have been told.
type oracle struct {
	verifiers map[string]*identity.Verifier // by backend
	uids      map[string]string             // of namespaces
	mux       *http.ServeMux                // reads a request as a backend does
	reached   map[int]int                   // how many requests of each call
	ids       map[string]bool               // of the identities of writes
	claims    map[int]*identity.Claims
}

func newOracle(t *testing.T) *oracle {
	t.Helper()
	o := &oracle{
		verifiers: map[string]*identity.Verifier{}, uids: map[string]string{}, mux: http.NewServeMux(),
		reached: map[int]int{}, ids: map[string]bool{}, claims: map[int]*identity.Claims{},
	}
	for _, op := range api.Operations() {
		o.mux.Handle(op.Method+" "+op.Path, readAs(op))
		if o.verifiers[op.Backend] == nil {
			v, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: gw.IdentityKeysDir(), Backend: op.Backend})
			if err != nil {
				t.Fatal(err)
			}
			o.verifiers[op.Backend] = v
		}
	}
	for _, n := range []string{"app-gate-api-cicd", "app-shop-cicd", "infra-postgres-cicd"} {
		ns, err := gw.APIServer.Client.CoreV1().Namespaces().Get(t.Context(), n, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		o.uids[n] = string(ns.UID)
	}
	return o
}

// readAs stands in a mux for the handler of an operation, and says what it
// would read.
func readAs(op api.Operation) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		app := r.PathValue("app")
		if op.Scope == api.ScopeFleet {
			app = r.URL.Query().Get("app")
		}
		w.Header().Set("Op", op.ID)
		w.Header().Set("App", app)
	}
}

// heard is an answer of the mux.
type heard http.Header

func (h heard) Header() http.Header         { return http.Header(h) }
func (h heard) Write(b []byte) (int, error) { return len(b), nil }
func (h heard) WriteHeader(int)             {}

// arrived holds one request at a backend to what was sent and what may pass.
func (o *oracle) arrived(t *testing.T, guesses []guess, r recorder.Request) {
	t.Helper()
	u, err := url.ParseRequestURI(r.URI)
	if err != nil {
		t.Fatalf("a backend got %q: %v", r.URI, err)
	}
	marker, _, _ := strings.Cut(u.Query().Get("n"), "?")
	number, err := strconv.Atoi(marker)
	if err != nil || number < 0 || number >= len(guesses) {
		return // of another test
	}
	where := fmt.Sprintf("%d: %s %s as %q for %q", number, guesses[number].op.Method, guesses[number].target, guesses[number].caller, guesses[number].person)
	o.reached[number]++
	read := heard{}
	o.mux.ServeHTTP(read, &http.Request{Method: r.Method, URL: u, Host: r.Host, Header: r.Header})
	op, known := api.Lookup(read.Header().Get("Op"))
	if !known {
		t.Errorf("%s: a backend got %s %s, which it does not serve", where, r.Method, r.URI)
		return
	}
	app := read.Header().Get("App")
	if !guesses[number].mayPass(op, app) {
		t.Errorf("%s: reached a backend as %s of %q", where, op.ID, app)
	}
	sent := r.Header.Values(identity.Header)
	if len(sent) != 1 {
		t.Errorf("%s: a backend got %d identities", where, len(sent))
		return
	}
	c, err := o.verifiers[op.Backend].Verify(sent[0])
	if err != nil {
		t.Errorf("%s: the identity does not verify: %v", where, err)
		return
	}
	o.claims[number] = c
	o.holds(t, where, guesses[number], r, op, app, c)
	for _, name := range []string{"Authorization", "X-Glidepath-Authorization", "Cookie", "X-Glidepath-On-Behalf-Of", "X-Glidepath-Audit", "X-Http-Method-Override", "X-Original-Url"} {
		if v := r.Header.Values(name); len(v) > 0 {
			t.Errorf("%s: a backend got %s", where, name)
		}
	}
}

// holds compares an identity with the model's.
func (o *oracle) holds(t *testing.T, where string, g guess, r recorder.Request, op api.Operation, app string, c *identity.Claims) {
	t.Helper()
	want := identity.Claims{Op: op.ID, Tier: string(op.Tier), App: app, OnBehalfOf: g.person}
	switch app {
	case "":
	case "postgres":
		want.Namespace = "infra-postgres-cicd"
	default:
		want.Namespace = "app-" + app + "-cicd"
	}
	want.NamespaceUID = o.uids[want.Namespace]
	if op.Tier != api.TierRead {
		want.Method, want.TargetHash = r.Method, identity.HashTarget(r.URI)
		if c.ID == "" || o.ids[c.ID] {
			t.Errorf("%s: a write's identity is used twice, or has no id", where)
		}
		o.ids[c.ID] = true
	}
	got := identity.Claims{
		Op: c.Op, Tier: c.Tier, App: c.App, Namespace: c.Namespace, NamespaceUID: c.NamespaceUID, OnBehalfOf: c.OnBehalfOf, Method: c.Method, TargetHash: c.TargetHash,
	}
	if fmt.Sprint(got) != fmt.Sprint(want) || c.Subject != username(t, g.caller) || !slices.Equal(c.Audience, []string{op.Backend}) {
		t.Errorf("%s: the identity is %+v of %s for %v, want %+v of %s for %s", where, got, c.Subject, c.Audience, want, username(t, g.caller), op.Backend)
	}
	if life := c.ExpiresAt.Sub(c.IssuedAt.Time); life <= 0 || life > identity.MaxLifetime {
		t.Errorf("%s: the identity lives for %s", where, life)
	}
}

// answered holds the answer and the audit line of a call to what reached a
// backend.
func (o *oracle) answered(t *testing.T, g guess, a answer, lines map[string][]line) {
	t.Helper()
	where := fmt.Sprintf("%d: %s %s as %q for %q", g.number, g.op.Method, g.target, g.caller, g.person)
	if o.reached[g.number] > 1 {
		t.Errorf("%s: reached a backend %d times", where, o.reached[g.number])
	}
	if g.plain && g.op.Planned && g.mayPass(g.op, g.app) != (o.reached[g.number] == 1) {
		t.Errorf("%s: answered %d, reached a backend %d times: %.200s", where, a.status, o.reached[g.number], a.body)
	}
	if (o.reached[g.number] > 0) != (a.status == http.StatusOK && string(a.body) == `{"recorded":true}`) {
		t.Errorf("%s: answered %d %.200s, reached a backend %d times", where, a.status, a.body, o.reached[g.number])
	}
	c := o.claims[g.number]
	if c == nil {
		return
	}
	found := lines[a.traceID()]
	if len(found) != 1 {
		t.Errorf("%s: %d audit lines", where, len(found))
		return
	}
	l := found[0]
	if l["op"] != c.Op || l["caller"] != c.Subject || l["app"] != orNil(c.App) || l["onBehalfOf"] != orNil(c.OnBehalfOf) || l["decision"] != "allow" || l["rule"] != nil {
		t.Errorf("%s: the line is %v", where, l)
	}
}

// raw sends a guess with its target and headers as they are.
func (w way) raw(t *testing.T, g guess) (answer, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), callTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, g.op.Method, w.base, http.NoBody)
	if err != nil {
		return answer{}, err
	}
	req.Host = g.host
	req.Header = g.header
	// Opaque goes out as it is.
	path, query, _ := strings.Cut(g.target, "?")
	req.URL.Opaque, req.URL.RawQuery = path, query
	res, err := w.client.Do(req)
	if err != nil {
		return answer{}, err
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	return answer{status: res.StatusCode, header: res.Header, body: b}, err
}
