package runs

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
)

const (
	oneList = "/v1/apps/shop/runs"
	fullAll = "/v1/apps/shop/runs?view=full&sinceHours=720&limit=1000"
)

var (
	oneRun = "/v1/apps/shop/runs/" + uidOf(1)
	oneLog = oneRun + "/logs/run-1-task-1"
)

// opOf is the operation of one of the targets.
func opOf(target string) string {
	switch {
	case target == oneRun:
		return "getRun"
	case target == oneLog:
		return "getRunLogs"
	default:
		return "listRuns"
	}
}

// stocked is a world with a run that has a TaskRun with a log.
func stocked(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	at := w.now.Add(-time.Hour)
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, at)}
	w.archive.tasks = []results.Record{taskRun(shopNamespace, 1, 1, at.Add(time.Second))}
	w.archive.logs = map[string]string{uidOf(1001): "a line\n"}
	return w
}

// requests are what the archive was asked.
func (w *world) requests() []string {
	w.archive.mu.Lock()
	defer w.archive.mu.Unlock()
	return slices.Clone(w.archive.asked)
}

// reads counts what the archive is asked while f runs.
func (w *world) reads(f func()) int {
	before := len(w.requests())
	f()
	return len(w.requests()) - before
}

// body gets a target, which has to be there, in the form that is asked for.
func (w *world) body(target, accept string) (body, tag string) {
	w.t.Helper()
	r := httptest.NewRequestWithContext(w.t.Context(), http.MethodGet, target, nil)
	r.Header.Set("Accept-Encoding", accept)
	got := w.send(r, about(opOf(target)))
	if got.Code != http.StatusOK {
		w.t.Errorf("%s: got %d %s", target, got.Code, got.Body)
	}
	return got.Body.String(), got.Header().Get("ETag")
}

// rule: R040, R041, R042
func TestWhatWasReadIsKeptForItsTime(t *testing.T) {
	for target, age := range map[string]time.Duration{oneRun: 7 * 24 * time.Hour, oneList: time.Minute, oneLog: time.Hour} {
		t.Run(opOf(target), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := stocked(t)
				get := func() { w.body(target, "") }
				if n := w.reads(get); n == 0 {
					t.Error("the first call reads nothing")
				}
				time.Sleep(age - time.Second)
				if n := w.reads(get); n != 0 {
					t.Errorf("a second before its time is over %d requests are made", n)
				}
				time.Sleep(2 * time.Second)
				if n := w.reads(get); n == 0 {
					t.Error("a second after its time is over nothing is read")
				}
			})
		})
	}
}

// rule: R041
func TestEveryQueryOfEveryNamespaceIsAListOfItsOwn(t *testing.T) {
	w := stocked(t)
	again := about("listRuns")
	again.NamespaceUID = "uid of one made again"
	anew := func() string {
		w.cluster.add(shopNamespace, again.NamespaceUID, w.now.Add(-time.Minute))
		return w.get(oneList, again).Body.String()
	}
	for i, get := range []func(){
		func() { w.body(oneList, "") }, func() { w.body(oneList+"?limit=7", "") }, func() { w.body(oneList+"?sinceHours=7", "") },
		func() { w.body(oneList+"?view=full", "") }, func() { anew() },
	} {
		if n := w.reads(get); n == 0 {
			t.Errorf("list %d is answered with another", i)
		}
		if n := w.reads(get); n != 0 {
			t.Errorf("list %d is read again", i)
		}
	}
	if got := anew(); got != `{"runs":[]}` {
		t.Errorf("of the namespace before an app that was made again has %s", got)
	}
}

// redisOf opens what replicas share, as a replica does.
func redisOf(t *testing.T, m *miniredis.Miniredis) *cache.Redis {
	t.Helper()
	r, err := cache.OpenRedis(cache.RedisConfig{URL: "redis://" + m.Addr(), Service: backend, Timeout: 10 * time.Second, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { r.Run(ctx) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "Redis to be used", r.Up)
	return r
}

// onRedis gives what a replica keeps that shares with others.
func onRedis(t *testing.T, m *miniredis.Miniredis) *documents {
	t.Helper()
	return keep(t, redisOf(t, m))
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for !so() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// rule: R040, R041, R042, R043
func TestReplicasShareWhatWasReadAndLoseNoAnswerWithIt(t *testing.T) {
	for target, kept := range map[string]struct {
		key string
		age time.Duration
	}{
		oneRun:  {"run:" + shopUID + ":" + uidOf(1), 7 * 24 * time.Hour},
		oneList: {"list:" + shopUID + ":168:100:false:false", time.Minute},
		oneLog:  {"log:" + shopUID + ":" + uidOf(1) + ":run-1-task-1", time.Hour},
	} {
		t.Run(opOf(target), func(t *testing.T) {
			m := miniredis.RunT(t)
			w := stocked(t)
			key := "glidepath:1:runs:{" + kept.key + "}"
			for _, accept := range []string{"", "gzip"} {
				w.server.documents = onRedis(t, m)
				first, tag := w.body(target, accept)
				eventually(t, "it to be shared", func() bool { return m.Exists(key) })
				// miniredis takes no time off by itself.
				if left := m.TTL(key); left > kept.age || left < kept.age-30*time.Second {
					t.Errorf("it is shared for %s, want %s", left, kept.age)
				}
				raw, err := m.Get(key)
				if err != nil || strings.Contains(raw, "run-1") {
					t.Errorf("it is not sealed: %v", err)
				}
				w.server.documents = onRedis(t, m) // another replica
				if n := w.reads(func() {
					if body, other := w.body(target, accept); body != first || other != tag {
						t.Error("another replica answers with other bytes")
					}
				}); n != 0 {
					t.Errorf("another replica makes %d requests", n)
				}
				m.FlushAll()
				w.server.documents = onRedis(t, m)
				if body, other := w.body(target, accept); body != first || other != tag {
					t.Error("once all is lost it answers with other bytes")
				}
				m.FlushAll()
			}
		})
	}
}

// slow is an archive that answers when it is let, or not at all.
type slow struct {
	*archived

	gate  chan struct{}
	began chan struct{} // gets a value when a read begins, if it has room
}

func (s *slow) hold(ctx context.Context) error {
	select {
	case s.began <- struct{}{}:
	default:
	}
	select {
	case <-s.gate:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (s *slow) PipelineRun(ctx context.Context, namespace, uid string) (results.Record, error) {
	rec, err := s.archived.PipelineRun(ctx, namespace, uid)
	if held := s.hold(ctx); held != nil {
		return results.Record{}, held
	}
	return rec, err
}

func (s *slow) PipelineRunRows(ctx context.Context, namespace string, since time.Time) iter.Seq2[results.Record, error] {
	return s.held(ctx, s.archived.PipelineRunRows(ctx, namespace, since))
}

func (s *slow) PipelineRuns(ctx context.Context, namespace string, since time.Time) iter.Seq2[results.Record, error] {
	return s.held(ctx, s.archived.PipelineRuns(ctx, namespace, since))
}

func (s *slow) held(ctx context.Context, all iter.Seq2[results.Record, error]) iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		if err := s.hold(ctx); err != nil {
			yield(results.Record{}, err)
			return
		}
		all(yield)
	}
}

// slowly makes a world's archive slow.
func (w *world) slowly() *slow {
	s := &slow{archived: w.archive, gate: make(chan struct{}), began: make(chan struct{}, 100)}
	w.server.archive = s
	return s
}

// rule: R044
func TestAReadGoesOnWhenItsCallerHasLeft(t *testing.T) {
	for _, target := range []string{oneRun, oneList, oneLog} {
		t.Run(opOf(target), func(t *testing.T) {
			w := stocked(t)
			archive := w.slowly()
			ctx, leave := context.WithCancel(t.Context())
			left := make(chan any)
			go func() {
				defer func() { left <- recover() }()
				r := httptest.NewRequestWithContext(ctx, http.MethodGet, target, nil)
				w.send(r, about(opOf(target)))
			}()
			<-archive.began
			leave()
			if got := <-left; got != http.ErrAbortHandler { //nolint:errorlint // what is recovered
				t.Errorf("the call ended with %v", got)
			}
			close(archive.gate)
			w.body(target, "") // joins the read, or finds what came of it
			if n := w.reads(func() { w.body(target, "") }); n != 0 {
				t.Errorf("a later call makes %d requests", n)
			}
			asked := w.requests()
			if slices.Sort(asked); len(slices.Compact(slices.Clone(asked))) != len(asked) {
				t.Errorf("it is read more than once: %q", asked)
			}
		})
	}
}

// rule: R045
func TestAReadThatTakesTooLongIsAFailureAndIsNotKept(t *testing.T) {
	for _, target := range []string{oneRun, oneList, oneLog} {
		t.Run(opOf(target), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := stocked(t)
				w.server.documents = keep(t, nil, func(c *Config) { c.FillTime = cache.MaxFillTime })
				w.server.wait = time.Hour // however long callers wait
				archive := w.slowly()
				start := time.Now()
				var all sync.WaitGroup
				for i := range 5 {
					all.Go(func() {
						time.Sleep(time.Duration(i) * 10 * time.Second)
						w.refused(w.get(target, about(opOf(target))), problem.SourceFailed)
						if took := time.Since(start); took != 90*time.Second {
							t.Errorf("caller %d is answered after %s", i, took)
						}
					})
				}
				all.Wait()
				close(archive.gate)
				if n := w.reads(func() { w.body(target, "") }); n == 0 {
					t.Error("the next call reads nothing")
				}
			})
		})
	}
}

// rule: R046
func TestCallersOfTwoReplicasShareOneRead(t *testing.T) {
	for _, target := range []string{oneRun, oneList, oneLog} {
		t.Run(opOf(target), func(t *testing.T) {
			m := miniredis.RunT(t)
			w := stocked(t)
			archive := w.slowly()
			other := *w
			server := *w.server
			other.server = &server
			w.server.documents, other.server.documents = onRedis(t, m), onRedis(t, m)
			var all sync.WaitGroup
			for i := range 50 {
				all.Go(func() { []*world{w, &other}[i%2].body(target, "gzip") })
			}
			<-archive.began
			close(archive.gate)
			all.Wait()
			asked := w.requests()
			if slices.Sort(asked); len(asked) == 0 || len(slices.Compact(slices.Clone(asked))) != len(asked) {
				t.Errorf("the archive was asked %q", asked)
			}
		})
	}
}

// sink is an answer that goes nowhere.
type sink struct {
	header        http.Header
	status, bytes int
}

func (s *sink) Header() http.Header            { return s.header }
func (*sink) FlushError() error                { return nil }
func (*sink) SetWriteDeadline(time.Time) error { return nil }
func (s *sink) WriteHeader(status int)         { s.status = status }
func (s *sink) Write(p []byte) (int, error)    { s.bytes += len(p); return len(p), nil }

// rule: R049
func TestAKeptListIsSentAsItIs(t *testing.T) {
	w := newWorld(t)
	text := filler()
	for n := range 100 {
		w.archive.runs = append(w.archive.runs, pipelineRun(shopNamespace, n+1, w.now.Add(-time.Duration(n)*time.Minute), annotated(text(n, 10<<10))))
	}
	mux := w.mux()
	const target = oneList + "?view=full"
	for _, accept := range []string{"", "gzip"} {
		first, tag := w.body(target, accept)
		if again, other := w.body(target, accept); again != first || other != tag || tag == "" {
			t.Errorf("%q: it is answered with other bytes", accept)
		}
		if accept == "" {
			var list struct{ Runs []json.RawMessage }
			if err := json.Unmarshal([]byte(first), &list); err != nil || len(list.Runs) != 100 {
				t.Fatalf("%d runs, %v", len(list.Runs), err)
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
		r.Header.Set("Accept-Encoding", accept)
		r = r.WithContext(identity.NewContext(t.Context(), about("listRuns")))
		sent := 0
		serve := func() {
			to := &sink{header: http.Header{}}
			mux.ServeHTTP(to, r)
			sent = to.bytes
		}
		serve()
		// A decoded run is dozens of allocations.
		if n := testing.AllocsPerRun(20, serve); n > 100 || sent != len(first) {
			t.Errorf("%q: a list of 100 runs takes %v allocations to send %d of %d bytes", accept, n, sent, len(first))
		}
	}
}
