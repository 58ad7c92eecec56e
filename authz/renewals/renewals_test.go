package renewals_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/denylist"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/renewals"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/authz/ticket"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/renewal"
	"hangar.io/glidepath/internal/seal"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is an authz that renews, with a real decision about what the fields say.
type world struct {
	t       *testing.T
	server  *renewals.Server
	tickets *ticket.Sealer
	ops     *operation.Table
	keys    string

	token   error // of the authentication
	user    string
	access  error
	allowed bool
	uid     string
	denied  error
	list    *denylist.List // of who is denied besides; may be nil
	mu      sync.Mutex     // of epoch and changed
	epoch   string
	changed chan struct{}
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	w := &world{t: t, user: "tower", allowed: true, uid: "uid-1", keys: filepath.Join(dir, "public"), epoch: "1", changed: make(chan struct{})}
	private, file := filepath.Join(dir, "key.pem"), filepath.Join(dir, "keys")
	if err := errors.Join(identity.GenerateKeyPair(private, w.keys), seal.GenerateKeyFile(file)); err != nil {
		t.Fatal(err)
	}
	signer, err := identity.LoadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	if w.tickets, err = ticket.NewSealer(file); err != nil {
		t.Fatal(err)
	}
	if w.ops, err = operation.NewTable(api.Operations()); err != nil {
		t.Fatal(err)
	}
	w.server = renewals.New(renewals.Config{
		Operations: w.ops, Signer: signer, Tickets: w.tickets, Metrics: prometheus.NewRegistry(),
		Decider: decision.New(decision.Config{Authenticator: w, Access: w, Namespaces: w, Delegates: []string{"tower"}, DenyList: w}),
		Denied:  w,
		Epoch: func() (string, <-chan struct{}) {
			w.mu.Lock()
			defer w.mu.Unlock()
			return w.epoch, w.changed
		},
	})
	return w
}

func (w *world) Authenticate(_ context.Context, tok token.Token, p authn.Purpose) (*authn.Caller, error) {
	if w.token != nil {
		return nil, w.token
	}
	if tok.Secret() != secret(time.Hour) || p != authn.ForRead {
		w.t.Errorf("asked about another token, for %v", p)
	}
	return authn.NewClusterCaller(authn.Facts{Username: w.user})
}

func (w *world) Allowed(context.Context, *authn.Caller, review.Right, authn.Purpose) (bool, error) {
	return w.allowed, w.access
}

func (w *world) Resolve(app string) (namespaces.Resolution, error) {
	return namespaces.Resolution{Namespace: namespaces.Namespace{Name: "app-" + app + "-cicd", UID: w.uid}}, nil
}

func (w *world) Check(c *authn.Caller, person string) error {
	if w.list != nil {
		if _, denied := w.list.Denies(c, person, time.Now()); denied {
			return problem.New(problem.AuthDenied, "")
		}
	}
	return w.denied
}

// began is when these tests say that their streams were opened.
var began = time.Now().Truncate(time.Second)

// secret is a token that ends some time after they began.
func secret(life time.Duration) string {
	claims := fmt.Sprintf(`{"exp":%d}`, began.Add(life).Unix())
	return "h." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".s"
}

type headers map[string]string

func (h headers) Get(name string) (string, int) {
	v, ok := h[name]
	if !ok {
		return "", 0
	}
	return v, 1
}

// ticket gives that of a delegate's stream.
func (w *world) ticket(life time.Duration, opened time.Time) string {
	w.t.Helper()
	return w.ticketOf("tower", "ana", life, opened)
}

func (w *world) ticketOf(user, person string, life time.Duration, opened time.Time) string {
	w.t.Helper()
	op, _ := w.ops.Lookup("streamLiveRuns")
	c := authn.Restore(authn.Facts{Username: user}, authn.User)
	h := headers{"authorization": "Bearer " + secret(life), "x-request-id": "r-1"}
	tok, err := token.FromHeaders(h)
	if err != nil {
		w.t.Fatal(err)
	}
	d := &decision.Decision{Operation: op, Caller: c, OnBehalfOf: person, App: "shop", Namespace: namespaces.Namespace{Name: "app-shop-cicd", UID: "uid-1"}}
	text, err := w.tickets.Seal(ticket.New(d, decision.Request{Operation: op, Target: "/v1/apps/shop/live/stream?x=1", Headers: h}, tok, opened))
	if err != nil {
		w.t.Fatal(err)
	}
	return text
}

// connection is one whose deadlines never come.
type connection struct{ *httptest.ResponseRecorder }

func (connection) SetReadDeadline(time.Time) error { return nil }

func (w *world) post(body string) (int, renewal.Answers) {
	w.t.Helper()
	rec := httptest.NewRecorder()
	w.server.Handler().ServeHTTP(connection{rec}, httptest.NewRequest(http.MethodPost, renewal.RenewPath, strings.NewReader(body)))
	var a renewal.Answers
	if rec.Code == http.StatusOK {
		if err := json.Unmarshal(rec.Body.Bytes(), &a); err != nil {
			w.t.Fatal(err)
		}
	}
	return rec.Code, a
}

func (w *world) renew(tickets ...string) []renewal.Answer {
	w.t.Helper()
	body, err := json.Marshal(renewal.Request{Tickets: tickets})
	if err != nil {
		w.t.Fatal(err)
	}
	status, a := w.post(string(body))
	if status != http.StatusOK || len(a.Answers) != len(tickets) {
		w.t.Fatalf("%d with %d answers", status, len(a.Answers))
	}
	return a.Answers
}

func TestWhatARenewalComesTo(t *testing.T) {
	bad := problem.New(problem.AuthBadToken, "")
	away := problem.New(problem.SourceFailed, "")
	for name, tc := range map[string]struct {
		change func(*world)
		life   time.Duration // of the token
		age    time.Duration // of the stream
		reason renewal.Reason
		rule   string
	}{
		"nothing has changed":             {func(*world) {}, time.Hour, 0, "", ""},
		"the token is taken back":         {func(w *world) { w.token = bad }, time.Hour, 0, renewal.Revoked, "GP-AUTH-002"},
		"the token has ended":             {func(w *world) { w.token = bad }, -time.Second, 0, renewal.Expired, "GP-AUTH-002"},
		"the token is somebody else's":    {func(w *world) { w.user = "autopilot" }, time.Hour, 0, renewal.Revoked, "GP-AUTH-003"},
		"the right is gone":               {func(w *world) { w.allowed = false }, time.Hour, 0, renewal.Revoked, "GP-AUTHZ-001"},
		"the namespace is gone":           {func(w *world) { w.uid = "" }, time.Hour, 0, renewal.Revoked, "GP-API-404"},
		"the namespace was made anew":     {func(w *world) { w.uid = "uid-2" }, time.Hour, 0, renewal.Revoked, "GP-API-404"},
		"the caller is denied by list":    {func(w *world) { w.denied = problem.New(problem.AuthDenied, "") }, time.Hour, 0, renewal.Revoked, "GP-AUTH-006"},
		"nobody can tell about the token": {func(w *world) { w.token = away }, time.Hour, 0, "", "GP-API-502"},
		"nobody can tell about the right": {func(w *world) { w.access = away }, time.Hour, 0, "", "GP-API-502"},
		"an error that says nothing":      {func(w *world) { w.access = errors.New("surprise") }, time.Hour, 0, "", "GP-API-502"},
		"the stream is a day old":         {func(*world) {}, time.Hour, ticket.MaxLife, renewal.Lifetime, ""},
		"the stream is nearly a day old":  {func(*world) {}, time.Hour, ticket.MaxLife - time.Minute, "", ""},
		"old, and without the right":      {func(w *world) { w.allowed = false }, time.Hour, ticket.MaxLife, renewal.Revoked, "GP-AUTHZ-001"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			text := w.ticket(tc.life, time.Now().Add(-tc.age))
			tc.change(w)
			a := w.renew(text)[0]
			granted := tc.reason == "" && tc.rule == ""
			if a.Reason != tc.reason || a.Rule != tc.rule || (a.Identity != "") != granted || (a.Ticket != "") != granted {
				t.Fatalf("got %s %s, identity of %d bytes", a.Reason, a.Rule, len(a.Identity))
			}
			if granted {
				w.checkGrant(a, text)
			}
		})
	}
}

// checkGrant checks what a granted renewal gives.
func (w *world) checkGrant(a renewal.Answer, before string) {
	w.t.Helper()
	v, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: w.keys, Backend: "livehub"})
	if err != nil {
		w.t.Fatal(err)
	}
	c, err := v.Verify(a.Identity)
	if err != nil {
		w.t.Fatal(err)
	}
	if c.Subject != "tower" || c.OnBehalfOf != "ana" || c.Op != "streamLiveRuns" || c.App != "shop" || c.NamespaceUID != "uid-1" ||
		c.TokenExpiry == nil || !c.TokenExpiry.Equal(began.Add(time.Hour)) {
		w.t.Errorf("the identity says %+v", c)
	}
	old, err := w.tickets.Open(before)
	if err != nil {
		w.t.Fatal(err)
	}
	next, err := w.tickets.Open(a.Ticket)
	if err != nil || !next.Opened.Equal(old.Opened) || next.RequestID != "r-1" || a.Ticket == before {
		w.t.Errorf("the next ticket: %v", err)
	}
}

func TestWhoIsDeniedByListLosesStreamsWhileTheAPIServerIsAway(t *testing.T) {
	const ci = "system:serviceaccount:shop:ci"
	for name, tc := range map[string]struct {
		list, user, person string
		denied             bool
	}{
		"the user":                        {"users: [" + ci + "]", ci, "", true},
		"a ServiceAccount by its group":   {"groups: [\"system:serviceaccounts:shop\"]", ci, "", true},
		"a person who signed in":          {"people: [Ana]", "people:ana", "", true},
		"the person a delegate names":     {"people: [Ana]", "tower", "ana", true},
		"the delegate":                    {"users: [tower]", "tower", "ana", true},
		"another user":                    {"users: [" + ci + "]", ci + "2", "", false},
		"another person":                  {"people: [ana]", "tower", "bob", false},
		"a group that no name tells of":   {"groups: [staff]", "tower", "ana", false},
		"a ServiceAccount of another app": {"groups: [\"system:serviceaccounts:shop\"]", "system:serviceaccount:shops:ci", "", false},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.token = problem.New(problem.SourceFailed, "")
			list, err := denylist.Parse("deny.yaml", []byte("version: \"1\"\n"+tc.list+"\n"))
			if err != nil {
				t.Fatal(err)
			}
			w.list = list
			want := renewal.Answer{Rule: "GP-API-502"}
			if tc.denied {
				want = renewal.Answer{Reason: renewal.Revoked, Rule: "GP-AUTH-006"}
			}
			if got := w.renew(w.ticketOf(tc.user, tc.person, time.Hour, time.Now()))[0]; got != want {
				t.Errorf("got %+v, want %+v", got, want)
			}
		})
	}
}

func TestATicketThatDoesNotOpenIsNoVerdict(t *testing.T) {
	w, other := newWorld(t), newWorld(t)
	good := w.ticket(time.Hour, time.Now())
	answers := w.renew("x", other.ticket(time.Hour, time.Now()), good, "")
	for i, want := range []string{"GP-EDGE-401", "GP-EDGE-401", "", "GP-EDGE-401"} {
		if a := answers[i]; a.Rule != want || a.Reason != "" || (a.Identity != "") != (want == "") {
			t.Errorf("answer %d: %s %s", i, a.Reason, a.Rule)
		}
	}
}

func TestARequestIsBounded(t *testing.T) {
	w := newWorld(t)
	many := make([]string, renewal.MaxBatch+1)
	body, err := json.Marshal(renewal.Request{Tickets: many})
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		body string
		want int
	}{
		"nothing":          {"", 400},
		"no ticket":        {`{"tickets":[]}`, 400},
		"no list":          {`{"tickets":"a"}`, 400},
		"too many tickets": {string(body), 400},
		"too much":         {`{"tickets":["` + strings.Repeat("a", 8<<20) + `"]}`, 400},
		"one":              {`{"tickets":["a"]}`, 200},
	} {
		if got, _ := w.post(tc.body); got != tc.want {
			t.Errorf("%s: %d", name, got)
		}
	}
	rec := httptest.NewRecorder()
	for _, path := range []string{"/", "/v1/whoami", "/metrics", "/internal"} {
		w.server.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, path, nil))
		if rec.Code != http.StatusNotFound {
			t.Errorf("%s: %d", path, rec.Code)
		}
	}
}

func TestAnEndedStreamIsAuditedWithoutItsToken(t *testing.T) {
	var out bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewJSONHandler(&out, nil)))
	t.Cleanup(func() { slog.SetDefault(before) })
	w := newWorld(t)
	text := w.ticket(time.Hour, time.Now().Add(-time.Minute))
	w.denied = problem.New(problem.AuthDenied, "")
	w.renew(text)
	var line map[string]any
	if err := json.Unmarshal(out.Bytes(), &line); err != nil {
		t.Fatalf("%v in %s", err, out.String())
	}
	for key, want := range map[string]any{
		"msg": "audit.stream", "op": "streamLiveRuns", "app": "shop", "caller": "tower", "onBehalfOf": "ana",
		"reason": "revoked", "rule": "GP-AUTH-006", "requestId": "r-1",
	} {
		if line[key] != want {
			t.Errorf("%s is %v", key, line[key])
		}
	}
	if ms, ok := line["ms"].(float64); !ok || ms < 60000 {
		t.Errorf("ms is %v", line["ms"])
	}
	if strings.Contains(out.String(), secret(time.Hour)) || strings.Contains(out.String(), text) {
		t.Error("the line holds the token or the ticket")
	}
}

func TestAnEpochIsAnsweredWhenItChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		ctx, end := context.WithCancel(t.Context())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.server.Run(ctx)
		}()
		ask := func(after string) (string, time.Duration) {
			start := time.Now()
			rec := httptest.NewRecorder()
			w.server.Handler().ServeHTTP(rec, httptest.NewRequest(http.MethodGet, renewal.EpochPath+"?after="+after, nil))
			var e renewal.Epoch
			if err := json.Unmarshal(rec.Body.Bytes(), &e); err != nil {
				t.Fatal(err)
			}
			return e.Epoch, time.Since(start)
		}
		if e, took := ask(""); e != "1" || took > 0 {
			t.Errorf("who knows none gets %q after %s", e, took)
		}
		if e, took := ask("1"); e != "1" || took != renewal.HoldTime {
			t.Errorf("who knows it gets %q after %s", e, took)
		}
		go func() {
			time.Sleep(5 * time.Second)
			w.mu.Lock()
			defer w.mu.Unlock()
			w.epoch = "2"
			close(w.changed)
		}()
		if e, took := ask("1"); e != "2" || took != 5*time.Second {
			t.Errorf("who waits gets %q after %s", e, took)
		}
		w.mu.Lock()
		w.changed = make(chan struct{})
		w.mu.Unlock()
		go func() {
			time.Sleep(5 * time.Second)
			end()
		}()
		if e, took := ask("2"); e != "2" || took != 5*time.Second {
			t.Errorf("when the process ends, who waits gets %q after %s", e, took)
		}
		<-ended
	})
}
