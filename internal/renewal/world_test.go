package renewal_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/renewal"
	"hangar.io/glidepath/internal/streamquota"
)

// world is a Keeper and the authz that it asks, in a bubble.
type world struct {
	t      *testing.T
	keeper *renewal.Keeper
	reg    *prometheus.Registry
	signer *identity.Signer
	stop   func()

	mu     sync.Mutex
	epoch  string
	turned chan struct{} // closed when the epoch changes
	flips  bool          // each request for the epoch finds another authz
	away   bool
	answer func(ticket string) renewal.Answer // nil grants everything
	shown  []showing
	sizes  []int // of the batches
	most   int   // requests under way at once
	now    int
	hold   time.Duration // how long a request for renewals takes
	hosts  map[string]int
}

// showing is a ticket that was shown.
type showing struct {
	ticket string
	at     time.Duration // since the start
}

func newWorld(t *testing.T) *world {
	t.Helper()
	dir := t.TempDir()
	private, public := filepath.Join(dir, "key.pem"), filepath.Join(dir, "public")
	if err := identity.GenerateKeyPair(private, public); err != nil {
		t.Fatal(err)
	}
	signer, err := identity.LoadSigner(private)
	if err != nil {
		t.Fatal(err)
	}
	v, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: public, Backend: "livehub"})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, reg: prometheus.NewRegistry(), signer: signer, epoch: "1", turned: make(chan struct{}), hosts: map[string]int{}}
	w.keeper, err = renewal.NewOver(renewal.Config{
		Options:  renewal.Options{URLs: []string{"http://one", "http://two"}},
		Verifier: v, Quota: streamquota.New(streamquota.Limits{Caller: 1000, Person: 2}), Metrics: w.reg,
	}, w)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		w.keeper.Run(ctx)
	}()
	w.stop = sync.OnceFunc(func() {
		cancel()
		<-done
	})
	return w
}

// claims are those of the world's one call.
func claims() identity.Claims {
	c := identity.Claims{Op: "streamLiveRuns", Tier: "T0", App: "shop", Namespace: "app-shop-cicd", NamespaceUID: "uid-1"}
	c.Subject, c.Audience, c.ID = "tower", []string{"livehub"}, "1"
	c.IssuedAt, c.ExpiresAt = identity.Times(time.Now(), time.Minute)
	return c
}

// sign gives an identity as authz makes it.
func (w *world) sign(change func(*identity.Claims)) string {
	w.t.Helper()
	c := claims()
	if change != nil {
		change(&c)
	}
	signed, err := w.signer.Sign(c)
	if err != nil {
		w.t.Fatal(err)
	}
	return signed
}

// RoundTrip is authz.
func (w *world) RoundTrip(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	w.hosts[r.URL.Host]++
	away := w.away
	w.mu.Unlock()
	if away {
		return nil, errors.New("away")
	}
	if r.URL.Path == renewal.EpochPath {
		return w.waitEpoch(r)
	}
	return w.renew(r)
}

func (w *world) waitEpoch(r *http.Request) (*http.Response, error) {
	w.mu.Lock()
	if w.flips {
		w.epoch = map[string]string{"a": "b"}[w.epoch]
		if w.epoch == "" {
			w.epoch = "a"
		}
	}
	epoch, turned := w.epoch, w.turned
	w.mu.Unlock()
	if r.URL.Query().Get("after") == epoch {
		select {
		case <-turned:
		case <-time.After(renewal.HoldTime):
		case <-r.Context().Done():
			return nil, r.Context().Err()
		}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return respond(renewal.Epoch{Epoch: w.epoch})
}

func (w *world) renew(r *http.Request) (*http.Response, error) {
	var req renewal.Request
	if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.now++
	w.most = max(w.most, w.now)
	w.sizes = append(w.sizes, len(req.Tickets))
	for _, ticket := range req.Tickets {
		w.shown = append(w.shown, showing{ticket: ticket, at: time.Since(start)})
	}
	answer, hold := w.answer, w.hold
	w.mu.Unlock()
	var out renewal.Answers
	for _, ticket := range req.Tickets {
		a := renewal.Answer{Identity: w.sign(nil), Ticket: ticket + "+"}
		if answer != nil {
			a = answer(ticket)
		}
		out.Answers = append(out.Answers, a)
	}
	if hold > 0 {
		<-time.After(hold)
	}
	w.mu.Lock()
	w.now--
	w.mu.Unlock()
	return respond(out)
}

// start is when every bubble begins.
var start = time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)

func respond(v any) (*http.Response, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(bytes.NewReader(raw))}, nil
}

// turn changes the epoch.
func (w *world) turn() {
	w.mu.Lock()
	defer w.mu.Unlock()
	n, err := strconv.Atoi(w.epoch)
	if err != nil {
		w.t.Error(err)
	}
	w.epoch = strconv.Itoa(n + 1)
	close(w.turned)
	w.turned = make(chan struct{})
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

func (w *world) tickets() []showing {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]showing(nil), w.shown...)
}

// call is a stream's call, as identity.Require lets it through.
func call(ticket string, c identity.Claims) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/v1/apps/shop/live/stream", nil)
	if ticket != "" {
		r.Header.Set(renewal.Header, ticket)
	}
	return r.WithContext(identity.NewContext(r.Context(), &c))
}

func (w *world) open(ticket string, change func(*identity.Claims)) (context.Context, func()) {
	w.t.Helper()
	c := claims()
	if change != nil {
		change(&c)
	}
	ctx, release, err := w.keeper.Keep(call(ticket, c))
	if err != nil {
		w.t.Fatal(err)
	}
	return ctx, release
}

// lasts waits for the end of a stream, and says when and why it was.
func lasts(ctx context.Context) (time.Duration, renewal.Reason) {
	<-ctx.Done()
	if end, ok := renewal.EndOf(ctx); ok {
		return time.Since(start), end.Reason
	}
	return time.Since(start), ""
}
