package testkube_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"hangar.io/glidepath/internal/upstream"
	"hangar.io/glidepath/services/runs/testkube"
)

// hanging answers requests whose path ends in one of the endings with so much of
// their answer and then nothing, or with nothing at all. Other answers are whole.
type hanging struct {
	t       *testing.T
	endings []string
	silent  bool // not even headers
}

const (
	oneExecution = `{"id":"66ae","name":"shop-e2e","tags":{"app":"shop"},"result":{"status":"passed"}}`
	oneRow       = `{"results":[` + oneExecution + `]}`
)

func (h hanging) RoundTrip(r *http.Request) (*http.Response, error) {
	bodies := map[string]string{"executions": oneRow, "66ae": oneExecution, "junit.xml": "<testsuites></testsuites>", "artifacts": "null"}
	for ending, body := range bodies {
		if !strings.HasSuffix(r.URL.Path, ending) {
			continue
		}
		w := httptest.NewRecorder()
		_, _ = w.WriteString(body)
		resp := w.Result()
		for _, e := range h.endings {
			switch {
			case e != ending:
			case h.silent:
				<-r.Context().Done()
				return nil, r.Context().Err()
			default:
				resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(body[:5]), stopped{r.Context()}))
			}
		}
		return resp, nil
	}
	h.t.Errorf("asked for %s", r.URL.Path)
	return nil, errors.New("unknown")
}

type stopped struct{ ctx context.Context }

func (s stopped) Read([]byte) (int, error) {
	<-s.ctx.Done()
	return 0, s.ctx.Err()
}

// A caller without a deadline does not wait for ever either, whatever stops and
// wherever it does.
func TestNothingHangs(t *testing.T) {
	t.Parallel()
	list := func(c *testkube.Client) error {
		got, err := c.List(context.Background(), "shop", time.Time{}, 50)
		if err == nil && len(got) != 1 {
			err = errors.New("the list is not as the stand-in gives it")
		}
		return err
	}
	report := func(c *testkube.Client) error {
		return c.Report(context.Background(), "shop", "66ae", time.Time{}, &bytes.Buffer{})
	}
	for name, tt := range map[string]struct {
		call    func(*testkube.Client) error
		endings []string
		fails   bool
		most    time.Duration
	}{
		"a list":               {list, []string{"executions"}, true, 40 * time.Second},
		"an execution, listed": {list, []string{"66ae"}, false, 10 * time.Second},
		"an execution":         {report, []string{"66ae"}, true, 40 * time.Second},
		"a report":             {report, []string{"junit.xml"}, true, 40 * time.Second},
	} {
		for _, silent := range []bool{false, true} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					c, err := testkube.New(testkube.Config{
						URL: "http://testkube/secret-path", Transport: hanging{t, tt.endings, silent},
						DetailTime: 8 * time.Second, DetailsTime: 10 * time.Second, RequestTime: 10 * time.Second, Stall: 5 * time.Second,
					})
					if err != nil {
						t.Fatal(err)
					}
					began := time.Now()
					if err := tt.call(c); (err != nil) != tt.fails || err != nil && strings.Contains(err.Error(), "secret-path") {
						t.Errorf("silent %t: %v", silent, err)
					}
					// A stall is told from what is merely slow: it does not take the time of a request.
					if took := time.Since(began); took > tt.most || !silent && took != 5*time.Second || took < 5*time.Second {
						t.Errorf("silent %t: it took %s", silent, took)
					}
				})
			})
		}
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

func TestNobodyWaitsForTheRestOfARefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, err := testkube.New(testkube.Config{URL: "http://testkube", Transport: refusing{}, DetailTime: generous, DetailsTime: generous})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := c.List(t.Context(), "shop", time.Time{}, 50); err == nil || time.Since(began) > time.Second {
			t.Errorf("%v, after %s", err, time.Since(began))
		}
	})
}

func TestRequestsAreCountedByWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	reg := prometheus.NewRegistry()
	s := start(t)
	bare := run(1)
	s.Put(withReport(0), bare)
	c := client(t, s, func(c *testkube.Config) { c.Metrics = upstream.NewMetrics(reg) })
	if _, err := c.List(t.Context(), "shop", time.Time{}, 50); err != nil {
		t.Error(err)
	}
	for id, want := range map[string]error{run(0).ID: nil, bare.ID: testkube.ErrNoReport, "66ae0b1f9d3c4a5b6c7dffff": testkube.ErrNotFound} {
		if err := c.Report(t.Context(), "shop", id, time.Time{}, &bytes.Buffer{}); !errors.Is(err, want) {
			t.Errorf("%s: %v", id, err)
		}
	}
	all, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range all {
		if f.GetName() != "glidepath_source_requests_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			if v := m.GetCounter().GetValue(); v > 0 {
				got[m.GetLabel()[0].GetValue()+" "+m.GetLabel()[1].GetValue()] = v
			}
		}
	}
	for what, n := range map[string]float64{"list ok": 1, "execution ok": 4, "execution absent": 1, "report ok": 1, "report failed": 1, "artifacts ok": 1} {
		if got[what] != n {
			t.Errorf("%s: %v of %v", what, got[what], got)
		}
	}
	if len(got) != 6 {
		t.Errorf("counted: %v", got)
	}
	if n, err := testutil.GatherAndCount(reg, "glidepath_source_request_duration_seconds"); err != nil || n != 4 {
		t.Errorf("%d kinds have times, %v", n, err)
	}
}
