package testkube_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	standin "hangar.io/glidepath/internal/standin/testkube"
	"hangar.io/glidepath/services/runs/testkube"
)

// rule: R023, R344
func TestTheRunsOfAnAppAreListedNewestFirst(t *testing.T) {
	t.Parallel()
	s := start(t)
	other, untagged := run(4), run(5)
	other.Tags = map[string]string{"app": "shop-admin"}
	untagged.Tags = nil
	s.Put(run(2), run(0), run(3), other, untagged, run(1))
	got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50)
	if err != nil {
		t.Fatal(err)
	}
	want := []testkube.Test{}
	for _, n := range []int{3, 2, 1, 0} {
		r := run(n)
		want = append(want, testkube.Test{
			ID: r.ID, Name: r.Name, Workflow: "shop-e2e", Status: "passed", Start: r.Started, End: r.Finished, Duration: 30 * time.Second,
			Labels: map[string]string{"team": "shop", "app": "shop", "commit": "9f1c2d7"},
		})
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the tests of shop (-want +got):\n%s", diff)
	}
}

// rule: R344
func TestAsManyRunsAreListedAsWereAskedFor(t *testing.T) {
	t.Parallel()
	s := start(t)
	var all []standin.Execution
	for n := range 300 {
		all = append(all, run(n))
	}
	s.Put(all...)
	c := client(t, s)
	for _, limit := range []int{1, 50, 150, 200} {
		got, err := c.List(t.Context(), "shop", time.Time{}, limit)
		if err != nil || len(got) != limit || got[0].ID != run(299).ID || got[limit-1].ID != run(300-limit).ID {
			t.Errorf("limit %d: %d runs, %v", limit, len(got), err)
		}
	}
}

// A Testkube that takes no notice of a filter, as of one it cannot read, gives
// the runs of every app.
func TestARunOfAnotherAppIsNeverListed(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.On(standin.List, standin.Answer(`{"results":[{"id":"a","name":"n","tags":{"app":"payroll"}},{"id":"b","name":"n"},{"id":"c","name":"n","tags":{"app":"shop"}}]}`))
	// The list says shop and the run itself says payroll.
	c := run(0)
	c.ID, c.Name, c.Tags = "c", "payroll-secret", map[string]string{"app": "payroll"}
	s.Put(c)
	got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50)
	if err != nil || len(got) != 1 || got[0].ID != "c" || got[0].Name != "n" {
		t.Errorf("%+v, %v", got, err)
	}
}

func TestARunThatMovesToTheNextPageIsListedOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	row := func(id int, app string) string {
		return fmt.Sprintf(`{"id":"run%d","name":"n","tags":{"app":%q}}`, id, app)
	}
	s.On(standin.List, func(w http.ResponseWriter, r *http.Request) bool {
		var rows []string
		if r.URL.Query().Get("page") == "0" {
			for id := range 100 {
				rows = append(rows, row(id, []string{"shop", "payroll"}[id%2]))
			}
		} else {
			rows = []string{row(96, "shop"), row(98, "shop"), row(100, "shop")}
		}
		return standin.Answer(`{"results":[`+strings.Join(rows, ",")+`]}`)(w, r)
	})
	got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 100)
	if err != nil || len(got) != 51 || !slices.Contains(ids(got), "run100") {
		t.Errorf("%d runs, %v", len(got), err)
	}
}

func TestPagesWithoutEndAreNotFollowed(t *testing.T) {
	t.Parallel()
	s := start(t)
	row := `{"id":"a","name":"n","tags":{"app":"shop"}}`
	s.On(standin.List, standin.Answer(`{"results":[`+row+strings.Repeat(","+row, 199)+`]}`))
	got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 200)
	lists := 0
	for _, r := range s.Requests() {
		if strings.Contains(r, "pageSize") {
			lists++
		}
	}
	if err != nil || len(got) != 1 || lists != 2 {
		t.Errorf("%d runs of %d pages, %v", len(got), lists, err)
	}
}

// oneByOne gives a list of runs, and each run when it is told to.
type oneByOne struct {
	runs    int
	begun   chan struct{}
	release chan struct{}
}

// RoundTrip answers.
func (o oneByOne) RoundTrip(r *http.Request) (*http.Response, error) {
	row := func(id string) string {
		return `{"id":"` + id + `","name":"full","tags":{"app":"shop"},"result":{"status":"passed"}}`
	}
	w := httptest.NewRecorder()
	if id, ok := strings.CutPrefix(r.URL.Path, "/v1/test-workflow-executions/"); ok {
		o.begun <- struct{}{}
		<-o.release
		_, _ = io.WriteString(w, row(id))
		return w.Result(), nil
	}
	var rows []string
	for n := range o.runs {
		rows = append(rows, row(strconv.Itoa(n)))
	}
	_, _ = io.WriteString(w, `{"results":[`+strings.Join(rows, ",")+`]}`)
	return w.Result(), nil
}

// rule: R346
func TestRunsAreReadInFullFourAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const runs = 20
		o := oneByOne{runs, make(chan struct{}, runs), make(chan struct{})}
		c, err := testkube.New(testkube.Config{URL: "http://testkube", Transport: o, DetailTime: generous, DetailsTime: generous})
		if err != nil {
			t.Fatal(err)
		}
		listed := make(chan []testkube.Test)
		go func() {
			got, err := c.List(t.Context(), "shop", time.Time{}, runs)
			if err != nil {
				t.Error(err)
			}
			listed <- got
		}()
		for ended := range runs {
			synctest.Wait() // whoever may begin has begun
			if n := len(o.begun); n != min(runs, ended+4) {
				t.Errorf("%d runs have ended and %d have begun", ended, n)
			}
			o.release <- struct{}{}
		}
		if got := <-listed; len(got) != runs {
			t.Errorf("%d runs", len(got))
		}
	})
}

// What is left is for lists and reports, which no row can stand in for.
func TestManyListsLeaveTurnsForOtherRequests(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const lists, runs = 10, 8
		o := oneByOne{runs, make(chan struct{}, lists*runs), make(chan struct{})}
		c, err := testkube.New(testkube.Config{URL: "http://testkube", Transport: o, DetailTime: generous, DetailsTime: generous})
		if err != nil {
			t.Fatal(err)
		}
		var listing sync.WaitGroup
		for range lists {
			listing.Go(func() {
				if got, err := c.List(t.Context(), "shop", time.Time{}, runs); err != nil || len(got) != runs {
					t.Errorf("%d runs, %v", len(got), err)
				}
			})
		}
		synctest.Wait() // whoever may begin has begun
		if n := len(o.begun); n != testkube.Connections-8 {
			t.Errorf("%d runs of %d lists are read at once", n, lists)
		}
		close(o.release)
		listing.Wait()
		if n := len(o.begun); n != lists*runs {
			t.Errorf("%d runs were read in full", n)
		}
	})
}

// rule: R347
func TestARunThatCannotBeReadInFullIsShownAsTheListSays(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]standin.Fault{
		"refused":             standin.Status(http.StatusInternalServerError),
		"gone since":          standin.Status(http.StatusNotFound),
		"of no form":          standin.Answer("<html>a login page</html>"),
		"empty":               standin.Answer("{}"),
		"another run":         standin.Answer(`{"id":"other","name":"x","tags":{"app":"shop"}}`),
		"broken off":          standin.Cut(`{"id":"66ae0b1f9d3c4a5b6c7d0001","name":"shop-`),
		"more than is read":   standin.Answer(`{"output":["` + strings.Repeat("x", 9<<20) + `"]}`),
		"only its tags":       standin.Answer(`{"id":"66ae0b1f9d3c4a5b6c7d0001","tags":{"app":"shop"}}`),
		"without a status":    standin.Answer(`{"id":"66ae0b1f9d3c4a5b6c7d0001","name":"shop-e2e-1","tags":{"app":"shop"}}`),
		"without a name":      standin.Answer(`{"id":"66ae0b1f9d3c4a5b6c7d0001","result":{"status":"aborted"},"tags":{"app":"shop"}}`),
		"types that are none": standin.Answer(`{"id":["66ae0b1f9d3c4a5b6c7d0001"]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			aborted := run(1)
			aborted.Status = "aborted"
			s.Put(run(0), aborted)
			s.On(standin.Detail, func(w http.ResponseWriter, r *http.Request) bool {
				return strings.HasSuffix(r.URL.Path, aborted.ID) && fault(w, r)
			})
			got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50)
			if err != nil || len(got) != 2 {
				t.Fatalf("%+v, %v", got, err)
			}
			// Without its steps nobody knows that the run passed.
			if got[0].ID != aborted.ID || got[0].Status != "aborted" || got[0].StatusNote != "" || got[0].Duration != 30*time.Second {
				t.Errorf("the run that could not be read is %+v", got[0])
			}
			if got[1].Status != "passed" {
				t.Errorf("the other is %+v", got[1])
			}
		})
	}
}

func TestRunsThatTakeTooLongAreShownAsTheListSays(t *testing.T) {
	t.Parallel()
	s := start(t)
	for n := range 12 {
		s.Put(run(n))
	}
	s.On(standin.Detail, standin.Slow(generous))
	got, err := client(t, s, func(c *testkube.Config) { c.DetailsTime = 50 * time.Millisecond }).List(t.Context(), "shop", time.Time{}, 50)
	if err != nil || len(got) != 12 {
		t.Errorf("%d runs, %v", len(got), err)
	}
}

// rule: R348
func TestARunThatWasAbortedAfterAllPassedCountsAsPassed(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		status, initialization string
		steps                  []string
		want                   string
		noted                  bool
	}{
		"every step passed":               {"aborted", "passed", []string{"passed", "passed"}, "passed", true},
		"a step failed":                   {"aborted", "passed", []string{"passed", "failed"}, "aborted", false},
		"a step was aborted":              {"aborted", "passed", []string{"passed", "aborted"}, "aborted", false},
		"a step never ran":                {"aborted", "passed", []string{"passed", "queued"}, "aborted", false},
		"it was aborted before its steps": {"aborted", "aborted", []string{"passed"}, "aborted", false},
		"no step is known":                {"aborted", "passed", nil, "aborted", false},
		"it was cancelled":                {"canceled", "passed", []string{"passed"}, "canceled", false},
		"it failed":                       {"failed", "passed", []string{"passed"}, "failed", false},
		"a word that is new":              {"hibernating", "passed", []string{"passed"}, "hibernating", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := start(t), run(0)
			r.Status, r.Initialization, r.Steps = tt.status, tt.initialization, nil
			for i, status := range tt.steps {
				r.Steps = append(r.Steps, standin.Step{Ref: string(rune('a' + i)), Status: status})
			}
			s.Put(r)
			got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50)
			if err != nil || len(got) != 1 {
				t.Fatalf("%v, %v", got, err)
			}
			if got[0].Status != tt.want || (got[0].StatusNote != "") != tt.noted {
				t.Errorf("%q, note %q", got[0].Status, got[0].StatusNote)
			}
		})
	}
}

func TestARunThatHasNotEndedHasNoTimesThatItHasNot(t *testing.T) {
	t.Parallel()
	s, queued, running := start(t), run(0), run(1)
	queued.Status, queued.Started, queued.Finished = "queued", time.Time{}, time.Time{}
	running.Status, running.Finished = "running", time.Time{}
	s.Put(queued, running)
	got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50)
	if err != nil || len(got) != 2 {
		t.Fatalf("%v, %v", got, err)
	}
	if r := got[0]; r.Status != "running" || r.Start.IsZero() || !r.End.IsZero() || r.Duration != 0 {
		t.Errorf("running: %+v", r)
	}
	if r := got[1]; r.Status != "queued" || !r.Start.IsZero() || !r.End.IsZero() || r.Duration != 0 {
		t.Errorf("queued: %+v", r)
	}
}

func TestAListThatCannotBeReadIsAnErrorAndNoEmptyList(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]standin.Fault{
		"refused":           standin.Status(http.StatusForbidden),
		"no such route":     standin.Status(http.StatusNotFound),
		"unavailable":       standin.Status(http.StatusServiceUnavailable),
		"led elsewhere":     standin.Status(http.StatusFound),
		"a login page":      standin.Answer("<html>secret-of-testkube</html>"),
		"nothing":           standin.Answer(""),
		"another object":    standin.Answer("{}"),
		"an array":          standin.Answer(`[{"id":"secret-of-testkube"}]`),
		"of another type":   standin.Answer(`{"results":"secret-of-testkube"}`),
		"broken off":        standin.Cut(`{"results":[{"id":"secret-of-testkube","name":"shop-`),
		"more than is read": standin.Answer(`{"totals":{"a":"` + strings.Repeat("x", 17<<20) + `"},"results":[]}`),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := start(t)
			s.Put(run(0))
			s.On(standin.List, fault)
			got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50)
			if err == nil {
				t.Fatalf("%+v", got)
			}
			if !strings.Contains(err.Error(), "testkube") || strings.Contains(err.Error(), "secret-of-testkube") {
				t.Errorf("it does not name the source, or quotes it: %v", err)
			}
		})
	}
	for name, body := range map[string]string{"null": `{"totals":{},"results":null}`, "an empty list": `{"totals":{},"results":[]}`} {
		s := start(t)
		s.On(standin.List, standin.Answer(body))
		if got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50); err != nil || len(got) != 0 {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

func TestATestkubeThatComesBackAtOnceIsAskedAgain(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Put(run(0))
	var asked atomic.Int32
	s.On(standin.List, func(w http.ResponseWriter, r *http.Request) bool {
		return asked.Add(1) < 3 && standin.Status(http.StatusServiceUnavailable)(w, r)
	})
	if got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
	asked.Store(-10)
	if _, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50); err == nil || asked.Load() != -7 {
		t.Errorf("asked %d times, %v", asked.Load()+10, err)
	}
	asked.Store(0)
	s.On(standin.List, func(w http.ResponseWriter, r *http.Request) bool {
		asked.Add(1)
		return standin.Status(http.StatusForbidden)(w, r)
	})
	if _, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50); err == nil || asked.Load() != 1 {
		t.Errorf("what was refused was asked for %d times, %v", asked.Load(), err)
	}
}

// Nothing is lost by reading once more what broke off in the middle.
func TestAnAnswerThatBreaksOffIsAskedForAgain(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Put(withReport(0))
	cut := func(asked *atomic.Int32, times int32) standin.Fault {
		return func(w http.ResponseWriter, r *http.Request) bool {
			return asked.Add(1) <= times && standin.Cut(`{"results":[{"id":"66ae0b1f9d3c4a5b6c7d0099","tags":{"app":"shop"}}`)(w, r)
		}
	}
	var lists, details atomic.Int32
	s.On(standin.List, cut(&lists, 2))
	got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50)
	if err != nil || !slices.Equal(ids(got), []string{run(0).ID}) || lists.Load() != 3 {
		t.Errorf("%v, %v, asked %d times", ids(got), err, lists.Load())
	}
	s.On(standin.Detail, cut(&details, 2))
	if err := client(t, s).Report(t.Context(), "shop", run(0).ID, time.Time{}, io.Discard); err != nil || details.Load() != 3 {
		t.Errorf("%v, asked %d times", err, details.Load())
	}
	lists.Store(-10)
	s.On(standin.List, func(w http.ResponseWriter, r *http.Request) bool {
		lists.Add(1)
		return standin.Answer("<html>")(w, r)
	})
	if _, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50); err == nil || lists.Load() != -9 {
		t.Errorf("a page was asked for %d times, %v", lists.Load()+10, err)
	}
}

// What has a place to fall back on is not worth a second request to a Testkube
// that has enough to do.
func TestADetailIsAskedForOnce(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Put(run(0), run(1))
	s.On(standin.Detail, standin.Status(http.StatusServiceUnavailable))
	if got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50); err != nil || len(got) != 2 {
		t.Errorf("%v, %v", got, err)
	}
	if n := len(s.Requests()); n != 1+2 {
		t.Errorf("%d requests, want the list and two details", n)
	}
}

func TestATestkubeThatAsksToBeLeftAloneIs(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Put(run(0))
	s.On(standin.List, func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Retry-After", "3600")
		return standin.Status(http.StatusServiceUnavailable)(w, r)
	})
	// There is no time for that, so it is asked for nothing more.
	if got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50); err == nil || len(s.Requests()) != 1 {
		t.Errorf("%v, %v, asked %q", got, err, s.Requests())
	}
	var asked atomic.Int32
	s.On(standin.List, func(w http.ResponseWriter, r *http.Request) bool {
		w.Header().Set("Retry-After", "1")
		return asked.Add(1) == 1 && standin.Status(http.StatusTooManyRequests)(w, r)
	})
	began := time.Now()
	if got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50); err != nil || len(got) != 1 || time.Since(began) < time.Second {
		t.Errorf("%v, %v, after %s", got, err, time.Since(began))
	}
}

func TestACallerThatLeavesEndsTheReading(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.Put(run(0))
	for _, part := range []standin.Part{standin.List, standin.Detail} {
		ctx, cancel := context.WithCancel(t.Context())
		s.On(part, func(w http.ResponseWriter, r *http.Request) bool {
			cancel()
			return standin.Slow(generous)(w, r)
		})
		if _, err := client(t, s).List(ctx, "shop", time.Time{}, 50); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", part, err)
		}
		s.On(part, nil)
	}
}
