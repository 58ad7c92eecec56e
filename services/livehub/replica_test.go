package livehub

import (
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/kubelist"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/seal"
	"hangar.io/glidepath/internal/streamquota"
	"hangar.io/glidepath/internal/telemetry"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// The app of most tests, and its namespace.
const (
	shop    = "shop"
	shopNS  = "app-shop-cicd"
	shopUID = "uid-of-shop"
)

var testConfig = Config{
	Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", IdentityKeysDir: "set by tests", SealKey: "set by tests",
	Redis: cache.Options{Time: 10 * time.Second}, ListTime: 20 * time.Second, ListBytes: 64 << 20, Lists: 8, Wait: 10 * time.Second, CacheBytes: 64 << 20,
	Streams: streamquota.Limits{Caller: 100, Person: 10},
	MaxLogs: 200, LogStall: 10 * time.Second, MaxStreams: 200,
}

// keys are what replicas of one livehub share.
type keys struct {
	dir    string // of public keys
	signer *identity.Signer
	seal   seal.Keys
}

func newKeys(t testing.TB) *keys {
	t.Helper()
	dir := t.TempDir()
	k := &keys{dir: filepath.Join(dir, "public")}
	private := filepath.Join(dir, "identity.pem")
	if err := identity.GenerateKeyPair(private, k.dir); err != nil {
		t.Fatal(err)
	}
	var err error
	if k.signer, err = identity.LoadSigner(private); err != nil {
		t.Fatal(err)
	}
	if k.seal, err = seal.NewKeys([]byte(strings.Repeat("k", seal.KeySize))); err != nil {
		t.Fatal(err)
	}
	return k
}

// replica is a livehub without its listeners.
type replica struct {
	t       testing.TB
	keys    *keys
	server  *server
	handler http.Handler
	// underWay is how many calls the handler is at.
	underWay *atomic.Int64
	reg      *prometheus.Registry
	redis    *cache.Redis
}

// newReplica starts a replica on a cluster, with a Redis if url is one.
func newReplica(t testing.TB, c *cluster, url string, change ...func(*Config)) *replica {
	t.Helper()
	cfg := testConfig
	cfg.Redis.URL = url
	for _, f := range change {
		f(&cfg)
	}
	client, err := kubelist.NewClient(&rest.Config{Host: c.URL, BearerToken: "own-token"},
		kubelist.Limits{Bytes: cfg.ListBytes, Time: cfg.ListTime, Concurrent: cfg.Lists})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	p := replicaOf(t, c.keys, cfg, client)
	if p.server.logs, err = newLogs(cfg, &rest.Config{Host: c.URL, BearerToken: "own-token"}, p.reg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.server.logs.source.Close)
	p.server.logs.keep, p.server.live.keep = kept, kept
	p.server.logs.serving = p.server.live.serving
	return p
}

// kept keeps a stream for as long as its caller stays.
func kept(r *http.Request) (ctx context.Context, release func(), err error) {
	return r.Context(), func() {}, nil
}

// replicaOf starts a replica on any source of lists.
func replicaOf(t testing.TB, k *keys, cfg Config, source reader) *replica {
	t.Helper()
	reg := prometheus.NewRegistry()
	redis, err := cfg.Redis.Open(backend, reg, new(telemetry.Tracing))
	if err != nil {
		t.Fatal(err)
	}
	s, err := newServer(cfg, k.seal, source, redis, reg)
	if err != nil {
		t.Fatal(err)
	}
	verifier, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: k.dir, Backend: backend})
	if err != nil {
		t.Fatal(err)
	}
	// Tests are about what is shared, however slow the machine; those about how
	// long set it back.
	s.hub.maxAge = time.Hour
	h := newHandler(s, verifier, redis.Ready, new(telemetry.Tracing))
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { redis.Run(ctx) })
	running.Go(func() { s.back.run(ctx) })
	t.Cleanup(func() {
		s.close()
		stop()
		running.Wait()
		if err := redis.Close(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "readiness", func() bool { return redis.Ready() == nil })
	p := &replica{t: t, keys: k, server: s, underWay: new(atomic.Int64), reg: reg, redis: redis}
	p.handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.underWay.Add(1)
		defer p.underWay.Add(-1)
		h.ServeHTTP(w, r)
	})
	return p
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(30 * time.Second)
	for !so() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// claims are those of an identity for an operation; change alters them.
func claims(op string, change ...func(*identity.Claims)) identity.Claims {
	c := identity.Claims{Op: op, Tier: "T0"}
	c.Subject, c.Audience, c.ID = "system:serviceaccount:demo:reader", []string{backend}, "id"
	c.IssuedAt, c.ExpiresAt = identity.Times(time.Now(), 30*time.Second)
	for _, f := range change {
		f(&c)
	}
	return c
}

// about makes an identity one about an app.
func about(app, namespace, uid string) func(*identity.Claims) {
	return func(c *identity.Claims) { c.App, c.Namespace, c.NamespaceUID = app, namespace, uid }
}

var aboutShop = about(shop, shopNS, shopUID)

// request makes a GET with an identity; headers are name and value in turn.
func (p *replica) request(target string, c identity.Claims, headers ...string) *http.Request {
	p.t.Helper()
	r := httptest.NewRequest(http.MethodGet, target, nil)
	token, err := p.keys.signer.Sign(c)
	if err != nil {
		p.t.Fatal(err)
	}
	r.Header.Set(identity.Header, token)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Add(headers[i], headers[i+1])
	}
	return r
}

// response is an answer that was read.
type response struct {
	*http.Response
	body []byte
}

// recorder takes the deadlines that a connection takes.
type recorder struct{ *httptest.ResponseRecorder }

func (recorder) SetWriteDeadline(time.Time) error { return nil }

func (p *replica) do(r *http.Request) response {
	p.t.Helper()
	w := recorder{httptest.NewRecorder()}
	p.handler.ServeHTTP(w, r)
	resp := w.Result()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return response{resp, body}
}

// live is listLive of the shop.
func (p *replica) live(headers ...string) response {
	p.t.Helper()
	return p.do(p.request("/v1/apps/shop/live", claims("listLive", aboutShop), headers...))
}

// runs is listLiveRuns of the fleet.
func (p *replica) runs(query string, headers ...string) response {
	p.t.Helper()
	return p.do(p.request("/v1/live"+query, claims("listLiveRuns"), headers...))
}

// tasks is listLiveTaskRuns of the fleet.
func (p *replica) tasks(query string, headers ...string) response {
	p.t.Helper()
	return p.do(p.request("/v1/live/taskruns"+query, claims("listLiveTaskRuns"), headers...))
}

// expectProblem wants a GP answer of a rule, and gives it.
func (r response) expectProblem(t testing.TB, rule problem.Rule) problem.Body {
	t.Helper()
	var b problem.Body
	if err := json.Unmarshal(r.body, &b); err != nil {
		t.Fatalf("status %d, body %q: %v", r.StatusCode, r.body, err)
	}
	if r.StatusCode != rule.Status || b.Rule != rule.ID || b.Message == "" || r.Header.Get("Content-Type") != "application/json" {
		t.Fatalf("status %d, %s, want %s", r.StatusCode, r.body, rule.ID)
	}
	return b
}

// ok wants a 200 and gives its body.
func (r response) ok(t testing.TB) []byte {
	t.Helper()
	if r.StatusCode != http.StatusOK {
		t.Fatalf("status %d: %s", r.StatusCode, r.body)
	}
	return r.body
}
