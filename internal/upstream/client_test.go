package upstream_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/upstream"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// source answers requests without a network, so that time can be that of a bubble.
type source func(*http.Request) (*http.Response, error)

func (s source) RoundTrip(r *http.Request) (*http.Response, error) { return s(r) }

// world is a client of a source and the registry that its requests are counted in.
type world struct {
	t   *testing.T
	reg *prometheus.Registry
	*upstream.Client
}

func newWorld(t *testing.T, s source, change ...func(*upstream.Config)) world {
	t.Helper()
	reg := prometheus.NewRegistry()
	cfg := upstream.Config{
		Transport: s, AtOnce: 2, Time: time.Minute, Stall: 10 * time.Second, Counts: upstream.NewMetrics(reg).Of("archive", "list", "log"),
	}
	for _, c := range change {
		c(&cfg)
	}
	return world{t, reg, upstream.New(cfg)}
}

func (w world) do(ctx context.Context) (*upstream.Answer, error) {
	w.t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://user:hunter2@archive/secret-path?q=1", nil)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.Do(req, "list")
}

// counted checks that what was asked ended as these outcomes, and nothing is left.
func (w world) counted(want map[string]float64) {
	w.t.Helper()
	all, err := w.reg.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range all {
		for _, m := range family.GetMetric() {
			labels := map[string]string{}
			for _, l := range m.GetLabel() {
				labels[l.GetName()] = l.GetValue()
			}
			switch family.GetName() {
			case "glidepath_source_requests_total":
				expected := 0.0
				if labels["kind"] == "list" {
					expected = want[labels["outcome"]]
				}
				if got := m.GetCounter().GetValue(); got != expected || labels["source"] != "archive" {
					w.t.Errorf("%v counts %v, want %v", labels, got, expected)
				}
			case "glidepath_source_requests_in_flight", "glidepath_source_requests_waiting":
				if got := m.GetGauge().GetValue(); got != 0 {
					w.t.Errorf("%s is %v at the end", family.GetName(), got)
				}
			}
		}
	}
	if len(all) != 4 {
		w.t.Errorf("%d metrics, want 4", len(all))
	}
}

func text(status int, body string) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.WriteHeader(status)
	_, _ = w.WriteString(body)
	return w.Result(), nil
}

// given answers with a body that a test has made.
func given(body io.ReadCloser) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: body}, nil
}

// hanging is the body of an answer that stops until its request has ended.
type hanging struct{ until <-chan struct{} }

func (h hanging) Read([]byte) (int, error) {
	<-h.until
	return 0, context.Canceled
}

func (hanging) Close() error { return nil }

// cut is the body of an answer that breaks off.
type cut struct{ io.Reader }

func (c cut) Read(p []byte) (int, error) {
	if n, err := c.Reader.Read(p); err == nil {
		return n, nil
	}
	return 0, io.ErrUnexpectedEOF
}

func (cut) Close() error { return nil }

type timeout struct{}

func (timeout) Error() string   { return "too slow" }
func (timeout) Timeout() bool   { return true }
func (timeout) Temporary() bool { return true }

// Whatever becomes of a request, it is counted as that, its turn ends, and the
// error says nothing of what was asked.
func TestWhatBecomesOfARequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		source source
		read   func(*testing.T, *upstream.Answer)
		cancel bool // the caller leaves after a second
		want   string
		took   time.Duration
	}{
		"an answer":                       {source: func(*http.Request) (*http.Response, error) { return text(200, "x") }, want: "ok"},
		"an answer that nobody wants all": {source: func(*http.Request) (*http.Response, error) { return text(200, "x") }, read: func(*testing.T, *upstream.Answer) {}, want: "ok"},
		"not there":                       {source: func(*http.Request) (*http.Response, error) { return text(404, "x") }, want: "absent"},
		"a redirect":                      {source: func(*http.Request) (*http.Response, error) { return text(302, "x") }, want: "refused"},
		"a refusal":                       {source: func(*http.Request) (*http.Response, error) { return text(401, "x") }, want: "refused"},
		"a failure":                       {source: func(*http.Request) (*http.Response, error) { return text(503, "x") }, want: "failed"},
		"of another form": {
			source: func(*http.Request) (*http.Response, error) { return text(200, "<html>") },
			read:   func(_ *testing.T, a *upstream.Answer) { a.Reject() }, want: "rejected",
		},
		"cut": {source: func(*http.Request) (*http.Response, error) { return given(cut{strings.NewReader("x")}) }, want: "broken"},
		"cut, and rejected for that": {
			source: func(*http.Request) (*http.Response, error) { return given(cut{strings.NewReader("x")}) },
			read: func(_ *testing.T, a *upstream.Answer) {
				_, _ = io.ReadAll(a.Body)
				a.Reject()
			}, want: "broken",
		},
		"stops": {
			source: func(r *http.Request) (*http.Response, error) { return given(hanging{r.Context().Done()}) },
			read: func(t *testing.T, a *upstream.Answer) {
				if _, err := io.ReadAll(a.Body); !errors.Is(err, upstream.ErrStalled) {
					t.Errorf("got %v", err)
				}
			}, want: "stalled", took: 10 * time.Second,
		},
		"away":               {source: func(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }, want: "unreachable"},
		"no headers in time": {source: func(*http.Request) (*http.Response, error) { return nil, timeout{} }, want: "late"},
		"never answers": {
			source: func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}, want: "late", took: time.Minute,
		},
		"a caller that leaves before the answer": {
			source: func(r *http.Request) (*http.Response, error) {
				<-r.Context().Done()
				return nil, r.Context().Err()
			}, cancel: true, want: "left", took: time.Second,
		},
		"a caller that leaves in the middle": {
			source: func(r *http.Request) (*http.Response, error) { return given(hanging{r.Context().Done()}) }, cancel: true, want: "left", took: time.Second,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if tt.cancel {
					time.AfterFunc(time.Second, cancel)
				}
				w := newWorld(t, tt.source, func(c *upstream.Config) { c.AtOnce = 1 })
				began := time.Now()
				a, err := w.do(ctx)
				switch {
				case err != nil && (strings.Contains(err.Error(), "secret-path") || strings.Contains(err.Error(), "hunter2")):
					t.Errorf("it says what was asked: %v", err)
				case err == nil && tt.read == nil:
					_, _ = io.ReadAll(a.Body)
				case err == nil:
					tt.read(t, a)
				}
				if err == nil {
					_, _ = a.Body.Close(), a.Body.Close()
				}
				if took := time.Since(began); took != tt.took {
					t.Errorf("it took %s, want %s", took, tt.took)
				}
				w.counted(map[string]float64{tt.want: 1})
				// Its turn has ended.
				next, stop := context.WithTimeout(t.Context(), time.Hour)
				defer stop()
				if a, err = w.do(next); err == nil {
					_ = a.Body.Close()
				} else if strings.Contains(err.Error(), "waiting") {
					t.Errorf("the next one waits: %v", err)
				}
			})
		})
	}
}

// The time between two reads is the reader's: what it does with what it got may
// take as long as it likes.
func TestAReaderThatTakesItsTimeIsNoStall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(*http.Request) (*http.Response, error) { return text(200, strings.Repeat("x", 5)) })
		a, err := w.do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			time.Sleep(11 * time.Second)
			if n, err := a.Body.Read(make([]byte, 1)); n != 1 || err != nil {
				t.Errorf("%d bytes, %v", n, err)
			}
		}
		_ = a.Body.Close()
		w.counted(map[string]float64{"ok": 1})
	})
}

func TestSoManyRequestsAtOnceAndNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var under, most atomic.Int32
		w := newWorld(t, func(*http.Request) (*http.Response, error) {
			n := under.Add(1)
			most.Store(max(most.Load(), n))
			time.Sleep(time.Second)
			return text(200, "x")
		})
		done := make(chan error)
		for range 6 {
			go func() {
				a, err := w.do(t.Context())
				if err == nil {
					time.Sleep(time.Second) // an answer that is being read is under way
					under.Add(-1)
					err = a.Body.Close()
				}
				done <- err
			}()
		}
		synctest.Wait()
		const counted = `
# HELP glidepath_source_requests_in_flight Requests to a source that are under way, answers that are being read among them.
# TYPE glidepath_source_requests_in_flight gauge
glidepath_source_requests_in_flight{source="archive"} 2
# HELP glidepath_source_requests_waiting Requests to a source that wait until others have ended.
# TYPE glidepath_source_requests_waiting gauge
glidepath_source_requests_waiting{source="archive"} 4
`
		if err := testutil.GatherAndCompare(w.reg, strings.NewReader(counted), "glidepath_source_requests_in_flight", "glidepath_source_requests_waiting"); err != nil {
			t.Error(err)
		}
		began := time.Now()
		for range 6 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if most.Load() != 2 || time.Since(began) != 6*time.Second {
			t.Errorf("%d at once, in %s", most.Load(), time.Since(began))
		}
		w.counted(map[string]float64{"ok": 6})
	})
}

func TestWhoWaitsForATurnLeavesInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, func(*http.Request) (*http.Response, error) { return text(200, "x") }, func(c *upstream.Config) { c.AtOnce = 1 })
		held, err := w.do(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		began := time.Now()
		if _, err := w.do(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 3*time.Second {
			t.Errorf("%v after %s", err, time.Since(began))
		}
		_ = held.Body.Close()
		w.counted(map[string]float64{"ok": 1, "unsent": 1})
	})
}

func TestARedirectLeadsNowhere(t *testing.T) {
	t.Parallel()
	asked := 0
	w := newWorld(t, func(*http.Request) (*http.Response, error) {
		asked++
		resp, err := text(http.StatusFound, "")
		resp.Header.Set("Location", "http://elsewhere/")
		return resp, err
	})
	a, err := w.do(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_ = a.Body.Close()
	if asked != 1 || a.StatusCode != http.StatusFound {
		t.Errorf("%d requests, status %d", asked, a.StatusCode)
	}
}
