package results_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"

	"hangar.io/glidepath/internal/upstream"
	"hangar.io/glidepath/services/runs/results"
)

// script answers requests one after the other, without a network.
type script struct {
	answers []answer
	asked   []time.Time
}

type answer struct {
	status int
	after  string // Retry-After
	body   string
}

// RoundTrip gives the next answer, and the last one from then on.
func (s *script) RoundTrip(*http.Request) (*http.Response, error) {
	next := s.answers[min(len(s.asked), len(s.answers)-1)]
	s.asked = append(s.asked, time.Now())
	w := httptest.NewRecorder()
	if next.after != "" {
		w.Header().Set("Retry-After", next.after)
	}
	w.WriteHeader(next.status)
	_, _ = w.WriteString(next.body)
	return w.Result(), nil
}

func (s *script) client(t *testing.T, change ...func(*results.Config)) *results.Client {
	t.Helper()
	cfg := results.Config{URL: "http://results", Transport: s}
	for _, c := range change {
		c(&cfg)
	}
	c, err := results.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

const page = `{"records":[{}]}` // of one record, which is a bad one

func TestAServerThatAsksToBeLeftAloneIs(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		answers []answer
		within  time.Duration // the caller's, 0 for none
		status  int           // of the error; 0 is none
		asked   int
		least   time.Duration // between the first request and the last
		most    time.Duration
	}{
		"for some seconds":                   {[]answer{{503, "7", ""}, {200, "", page}}, 0, 0, 2, 7 * time.Second, 8 * time.Second},
		"each time":                          {[]answer{{503, "7", ""}, {504, "5", ""}, {200, "", page}}, 0, 0, 3, 12 * time.Second, 15 * time.Second},
		"without saying for how long":        {[]answer{{503, "", ""}, {200, "", page}}, 0, 0, 2, 0, time.Second},
		"longer than its caller waits":       {[]answer{{503, "30", ""}, {200, "", page}}, 10 * time.Second, 503, 1, 0, 0},
		"longer than a list may take":        {[]answer{{503, "3600", ""}, {200, "", page}}, 0, 503, 1, 0, 0},
		"by what stands before it":           {[]answer{{429, "3", ""}, {200, "", page}}, 0, 0, 2, 3 * time.Second, 4 * time.Second},
		"by what stands before it, for ever": {[]answer{{429, "3", ""}}, 0, 429, 3, 6 * time.Second, 10 * time.Second},
		"where it will not change its mind":  {[]answer{{401, "3", ""}}, 0, 401, 1, 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.within > 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.within)
					defer cancel()
				}
				s := &script{answers: tt.answers}
				var failure error
				for _, err := range s.client(t).PipelineRuns(ctx, shop, time.Now()) {
					if err != nil && !errors.Is(err, results.ErrBadRecord) {
						failure = err
					}
				}
				if tt.status == 0 && failure != nil {
					t.Errorf("got %v", failure)
				}
				if tt.status != 0 {
					checkFailure(t, failure, tt.status)
				}
				if len(s.asked) != tt.asked {
					t.Fatalf("%d requests, want %d", len(s.asked), tt.asked)
				}
				if took := s.asked[len(s.asked)-1].Sub(s.asked[0]); took < tt.least || took > tt.most {
					t.Errorf("the last request came after %s", took)
				}
			})
		})
	}
}

// refusing answers with a refusal whose body stops.
type refusing struct{}

func (refusing) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	w.WriteHeader(http.StatusServiceUnavailable)
	resp := w.Result()
	resp.Body = io.NopCloser(stopped{r.Context()})
	return resp, nil
}

type stopped struct{ ctx context.Context }

func (s stopped) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

func TestNobodyWaitsForTheRestOfARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := results.New(results.Config{URL: "http://results", Transport: refusing{}})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, err := range c.PipelineRuns(t.Context(), shop, time.Now()) {
			checkFailure(t, err, http.StatusServiceUnavailable)
		}
		if took := time.Since(began); took > 2*time.Second { // its pauses
			t.Errorf("it took %s", took)
		}
	})
}

// held answers when it is told to.
type held struct{ begun, release chan struct{} }

func (h *held) RoundTrip(r *http.Request) (*http.Response, error) {
	h.begun <- struct{}{}
	select {
	case <-h.release:
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
	w := httptest.NewRecorder()
	w.WriteHeader(http.StatusUnauthorized)
	return w.Result(), nil
}

// Logs have turns of their own: however slowly they are read, runs are not held up.
func TestSoManyRequestsAtOnceAndNoMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := &held{begun: make(chan struct{}, 100), release: make(chan struct{})}
		c, err := results.New(results.Config{URL: "http://results", Transport: h, Limits: results.Limits{AtOnce: 3, LogsAtOnce: 2}})
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan error)
		for range 10 {
			go func() {
				_, err := c.Log(t.Context(), shop, uid(1), uid(2))
				done <- err
			}()
		}
		synctest.Wait()
		if n := len(h.begun); n != 2 {
			t.Errorf("%d logs are asked for at once", n)
		}
		for range 10 {
			go func() {
				_, err := c.PipelineRun(t.Context(), shop, uid(1))
				done <- err
			}()
		}
		synctest.Wait()
		if n := len(h.begun); n != 2+3 {
			t.Errorf("%d logs and runs are asked for at once", n)
		}
		close(h.release)
		for range 20 {
			checkFailure(t, <-done, http.StatusUnauthorized)
		}
	})
}

func TestRequestsAreCountedByWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	a := aDayOf(t, 12)
	a.taskRun(shop, 100, 1, now)
	c, err := results.New(results.Config{URL: a.URL(), Transport: a.transport(), Limits: small, Metrics: upstream.NewMetrics(reg), Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	check(t, c.PipelineRuns(t.Context(), shop, now.Add(-12*time.Hour)), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	check(t, c.TaskRuns(t.Context(), "app-gate-cicd", now.Add(-12*time.Hour)))
	if _, err := c.PipelineRun(t.Context(), shop, uid(1)); err != nil {
		t.Error(err)
	}
	if _, err := c.Log(t.Context(), shop, uid(1), uid(100)); !errors.Is(err, results.ErrNoLog) {
		t.Error(err)
	}
	const want = `
# HELP glidepath_source_requests_total Requests to a source outside, by what was asked for and what became of it.
# TYPE glidepath_source_requests_total counter
glidepath_source_requests_total{kind="alive",outcome="absent",source="results"} 1
glidepath_source_requests_total{kind="log",outcome="absent",source="results"} 1
glidepath_source_requests_total{kind="run",outcome="ok",source="results"} 1
glidepath_source_requests_total{kind="runs",outcome="ok",source="results"} 3
glidepath_source_requests_total{kind="taskruns",outcome="ok",source="results"} 2
`
	if err := testutil.GatherAndCompare(onlyNonZero{reg}, strings.NewReader(want), "glidepath_source_requests_total"); err != nil {
		t.Error(err)
	}
}

// onlyNonZero leaves out what never happened.
type onlyNonZero struct{ prometheus.Gatherer }

func (g onlyNonZero) Gather() ([]*dto.MetricFamily, error) {
	all, err := g.Gatherer.Gather()
	for _, f := range all {
		f.Metric = slices.DeleteFunc(f.GetMetric(), func(m *dto.Metric) bool {
			return m.GetCounter().GetValue() == 0 && f.GetType() == dto.MetricType_COUNTER
		})
	}
	return all, err
}
