package results_test

import (
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	standin "hangar.io/glidepath/internal/standin/results"
	"hangar.io/glidepath/services/runs/results"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// now is when the tests take place.
var now = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// archive is a stand-in with runs in it.
type archive struct {
	*standin.Server
	t *testing.T
}

func newArchive(t *testing.T, cfg standin.Config) archive {
	t.Helper()
	s, err := standin.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return archive{s, t}
}

// uid is a UID that a number stands for.
func uid(n int) string { return fmt.Sprintf("%08d-0000-4000-8000-000000000000", n) }

// run archives a PipelineRun.
func (a archive) run(namespace string, n int, created time.Time) {
	a.t.Helper()
	a.put(fmt.Sprintf(`{"kind":"PipelineRun","apiVersion":"tekton.dev/v1","metadata":{"name":"run-%d","namespace":%q,"uid":%q,"creationTimestamp":%q},`+
		`"status":{"completionTime":%q,"conditions":[{"type":"Succeeded","status":"True","reason":"Succeeded"}]}}`,
		n, namespace, uid(n), created.Format(time.RFC3339), created.Add(time.Minute).Format(time.RFC3339)))
}

// taskRun archives a TaskRun of a run.
func (a archive) taskRun(namespace string, n, run int, created time.Time) {
	a.t.Helper()
	a.put(fmt.Sprintf(`{"kind":"TaskRun","apiVersion":"tekton.dev/v1beta1","metadata":{"name":"task-%d","namespace":%q,"uid":%q,"creationTimestamp":%q,`+
		`"ownerReferences":[{"apiVersion":"tekton.dev/v1","kind":"PipelineRun","uid":%q}]}}`, n, namespace, uid(n), created.Format(time.RFC3339), uid(run)))
}

func (a archive) put(object string) {
	a.t.Helper()
	if _, err := a.Archive([]byte(object)); err != nil {
		a.t.Fatal(err)
	}
}

// client gives a client of the archive at the time of the tests.
func (a archive) client(limits results.Limits) *results.Client {
	a.t.Helper()
	if limits.Pause == 0 {
		limits.Pause = time.Millisecond
	}
	c, err := results.New(results.Config{URL: a.URL(), Transport: a.transport(), Limits: limits, Now: func() time.Time { return now }})
	if err != nil {
		a.t.Fatal(err)
	}
	return c
}

// transport is closed with the test.
func (a archive) transport() *http.Transport {
	t := &http.Transport{}
	a.t.Cleanup(t.CloseIdleConnections)
	return t
}

// uids gives the UIDs that a list yields, and the error that ends it.
func uids(list iter.Seq2[results.Record, error]) (all []string, err error) {
	for r, err := range list {
		if err != nil {
			return all, err
		}
		all = append(all, r.UID)
	}
	return all, nil
}

func want(numbers ...int) (all []string) {
	for _, n := range numbers {
		all = append(all, uid(n))
	}
	return all
}

func check(t *testing.T, list iter.Seq2[results.Record, error], numbers ...int) {
	t.Helper()
	got, err := uids(list)
	if err != nil || !slices.Equal(got, want(numbers...)) {
		t.Errorf("got %v, %v; want %v", got, err, want(numbers...))
	}
}

func TestRunsOfAWindowLastStoredFirstOverAllPages(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{})
	var newest []int
	for n := range 23 {
		a.run("app-shop-cicd", n, now.Add(-time.Duration(n)*time.Hour))
		newest = append(newest, n)
	}
	a.run("app-gate-cicd", 100, now.Add(-time.Minute))
	a.taskRun("app-shop-cicd", 200, 3, now.Add(-time.Hour))
	c := a.client(results.Limits{PageRecords: 5})
	check(t, c.PipelineRuns(t.Context(), "app-shop-cicd", now.Add(-24*time.Hour)), newest...)
	check(t, c.PipelineRuns(t.Context(), "app-shop-cicd", now.Add(-4*time.Hour)), 0, 1, 2, 3, 4)
	check(t, c.TaskRuns(t.Context(), "app-shop-cicd", now.Add(-24*time.Hour)), 200)
	check(t, c.TaskRunsOf(t.Context(), "app-shop-cicd", uid(3)), 200)
	check(t, c.PipelineRuns(t.Context(), "-", now.Add(-time.Hour)), 0, 100, 1)
}

func TestAWindowReachesBackThirtyDays(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{})
	a.run("app-shop-cicd", 1, now.Add(-results.MaxWindow))
	a.run("app-shop-cicd", 2, now.Add(-results.MaxWindow-time.Second))
	check(t, a.client(results.Limits{}).PipelineRuns(t.Context(), "app-shop-cicd", now.Add(-40*24*time.Hour)), 1)
}

func TestOneRun(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{})
	a.run("app-shop-cicd", 1, now)
	c := a.client(results.Limits{})
	r, err := c.PipelineRun(t.Context(), "app-shop-cicd", uid(1))
	if err != nil || r.UID != uid(1) || r.Result() != uid(1) || r.Namespace() != "app-shop-cicd" || !r.Created.Equal(now) || r.Type != results.PipelineRun {
		t.Errorf("got %+v, %v", r, err)
	}
	for _, name := range []struct{ namespace, uid string }{
		{"app-shop-cicd", uid(2)}, {"app-gate-cicd", uid(1)}, {"-", uid(1)}, {"app-shop-cicd", "-"}, {"app-shop-cicd", "../../x"}, {"", ""},
	} {
		if _, err := c.PipelineRun(t.Context(), name.namespace, name.uid); !errors.Is(err, results.ErrNotFound) {
			t.Errorf("%v: got %v", name, err)
		}
	}
}

func TestALog(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{})
	a.run("app-shop-cicd", 1, now)
	for n, text := range map[int][]byte{2: []byte("[build] hello\n"), 3: nil} {
		a.taskRun("app-shop-cicd", n, 1, now)
		if err := a.ArchiveLog("app-shop-cicd", uid(1), uid(n), text, now); err != nil {
			t.Fatal(err)
		}
	}
	c := a.client(results.Limits{})
	log, err := c.Log(t.Context(), "app-shop-cicd", uid(1), uid(2))
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(log)
	if cerr := log.Close(); err != nil || cerr != nil || string(text) != "[build] hello\n\n" {
		t.Errorf("got %q, %v, %v", text, err, cerr)
	}
	for _, n := range []int{3, 4} {
		if _, err := c.Log(t.Context(), "app-shop-cicd", uid(1), uid(n)); !errors.Is(err, results.ErrNoLog) {
			t.Errorf("TaskRun %d: got %v", n, err)
		}
	}
}

func TestAnEmptyListIsBelievedWhenTheDatabaseAnswers(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{})
	c := a.client(results.Limits{})
	check(t, c.PipelineRuns(t.Context(), "app-shop-cicd", now.Add(-time.Hour)))
	a.run("app-shop-cicd", 1, now)
	a.SetFaults(standin.Fault{Path: "filter=", Empty: true, Times: 1})
	check(t, c.PipelineRuns(t.Context(), "app-shop-cicd", now.Add(-time.Hour)), 1)
	a.SetFaults(standin.Fault{Path: "filter=", Empty: true}, standin.Fault{Status: http.StatusInternalServerError})
	if got, err := uids(c.PipelineRuns(t.Context(), "app-shop-cicd", now.Add(-time.Hour))); err == nil {
		t.Errorf("a database that is down gives %v", got)
	}
}

// A filter that takes the database longer than it may gives an empty list each time,
// while everything else is answered.
func TestAWindowThatComesEmptyIsHeldAgainstWhatWasStoredLast(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		runs  []int // hours ago
		times int   // how often the window comes empty; 0 is always
		want  []int
		fails bool
		asked int
	}{
		"there is nothing":                  {nil, 0, nil, false, 3},
		"there is something, but not in it": {[]int{30, 40, 50, 60, 70, 80, 90}, 0, nil, false, 3},
		"there is something in it":          {[]int{1, 30}, 0, nil, true, 6},
		"it is so once":                     {[]int{1, 30}, 1, []int{0}, false, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchive(t, standin.Config{})
			for n, hours := range tt.runs {
				a.run(shop, n, now.Add(-time.Duration(hours)*time.Hour))
			}
			a.SetFaults(standin.Fault{Path: "creationTimestamp+%3E%3D", Empty: true, Times: tt.times})
			list := a.client(results.Limits{}).PipelineRuns(t.Context(), shop, now.Add(-24*time.Hour))
			if tt.fails {
				_, err := uids(list)
				checkFailure(t, err, http.StatusOK)
			} else {
				check(t, list, tt.want...)
			}
			if n := len(a.Requests()); n != tt.asked {
				t.Errorf("%d requests, want %d", n, tt.asked)
			}
		})
	}
}

func TestBreakingOffEndsTheReading(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{})
	for n := range 20 {
		a.run("app-shop-cicd", n, now.Add(-time.Duration(n)*time.Hour))
	}
	c := a.client(results.Limits{PageRecords: 5})
	for r, err := range c.PipelineRuns(t.Context(), "app-shop-cicd", now.Add(-100*time.Hour)) {
		if err != nil || r.UID != uid(0) {
			t.Errorf("got %v, %v first", r.UID, err)
		}
		break
	}
	if n := len(a.Requests()); n != 1 {
		t.Errorf("%d pages were asked for", n)
	}
}

func TestRowsHoldWhatAListShowsAndAreAllThere(t *testing.T) {
	t.Parallel()
	a := newArchive(t, standin.Config{})
	for n := range 12 {
		at := now.Add(-time.Duration(n) * time.Hour)
		a.put(fmt.Sprintf(`{"kind":"PipelineRun","apiVersion":"tekton.dev/v1","metadata":{"name":"run-%d","namespace":"app-shop-cicd","uid":%q,"creationTimestamp":%q,"managedFields":[1]},`+
			`"spec":{"pipelineRef":{"name":"ci"},"pipelineSpec":{"tasks":["long"]}},"status":{"conditions":[{"reason":"Failed"}]}}`, n, uid(n), at.Format(time.RFC3339)))
	}
	c := a.client(results.Limits{PageRecords: 5})
	check(t, c.PipelineRunRows(t.Context(), "app-shop-cicd", now.Add(-24*time.Hour)), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11)
	for r, err := range c.PipelineRunRows(t.Context(), "app-shop-cicd", now) {
		want := fmt.Sprintf(`{"apiVersion":"tekton.dev/v1","kind":"PipelineRun",`+
			`"metadata":{"annotations":null,"creationTimestamp":"2026-11-20T12:00:00Z","labels":null,"name":"run-0","namespace":"app-shop-cicd","uid":%q},`+
			`"spec":{"params":null,"pipelineRef":{"name":"ci"}},"status":{"completionTime":null,"conditions":[{"reason":"Failed"}],"startTime":null}}`, uid(0))
		if err != nil || string(r.Value) != want {
			t.Errorf("got %s, %v", r.Value, err)
		}
	}
}
