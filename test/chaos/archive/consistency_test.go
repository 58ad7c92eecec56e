package archive_test

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"testing"
	"time"

	"hangar.io/glidepath/internal/standin/results"
	"hangar.io/glidepath/internal/standin/testkube"
	"hangar.io/glidepath/test/chaos/steps"
)

// someCalls are made at least before and after each step of a fault.
const someCalls = 30

// fault is what happens to the parts of a gateway, or to its sources, while callers ask.
type fault struct {
	name  string
	steps []steps.Step
	// felt is a rule by which some calls must have failed; empty where nobody need feel anything.
	felt string
	// calls are made at least after each step; 0 is someCalls.
	calls int
	// anew has an app be made anew after the steps.
	anew bool
}

// faults are what happens, one after the other.
func faults(w *world) []fault {
	const failed = "GP-API-502"
	both, redis, url := w.processes(), w.gw.Redis.Process, w.gw.Redis.URL
	archive := func(f ...results.Fault) steps.Step {
		return func(context.Context) error { w.gw.Results.SetFaults(f...); return nil }
	}
	slow := results.Fault{Delay: 300 * time.Millisecond}
	return []fault{
		{name: "what Redis holds is mixed up, and forgotten", steps: []steps.Step{steps.Redis(url, mixUp), steps.Flush(url)}},
		{name: "the archive is slow, and an app is made anew", steps: []steps.Step{archive(slow)}, anew: true},
		{name: "the archive refuses", felt: failed, steps: []steps.Step{
			archive(results.Fault{Status: http.StatusForbidden, Body: `{"code":7,"message":"permission denied"}`}),
			archive(results.Fault{Status: http.StatusTooManyRequests}),
			archive(results.Fault{Status: http.StatusNotFound, Body: "<html>no such host</html>"}),
		}},
		{name: "the archive fails", felt: failed, steps: []steps.Step{
			archive(results.Fault{Status: http.StatusInternalServerError, Body: `{"code":13,"message":"pq: too many connections"}`}),
			archive(results.Fault{Status: http.StatusOK, Body: "<html>nginx</html>"}, results.Fault{Status: http.StatusOK, Body: `{"code":13,"message":"x"}`}),
		}},
		{name: "the archive breaks off", felt: failed, steps: []steps.Step{
			archive(results.Fault{Cut: 900}), archive(results.Fault{Path: "/logs/", Append: `{"error":{"code":13,"message":"x"}}` + "\n"}, results.Fault{Cut: 40_000}),
			archive(w.nowAndThen(results.Fault{Hang: 700}, 4)...),
		}},
		{name: "Testkube fails", felt: failed, steps: []steps.Step{
			tests(w, testkube.Status(http.StatusBadGateway)), tests(w, testkube.Status(http.StatusNotFound)), tests(w, testkube.Answer(`{}`)), tests(w, testkube.Cut(`{"results":[{"id":"`)),
			tests(w, nil, testkube.Status(http.StatusInternalServerError)),
		}},
		{name: "Redis is killed and stands still", steps: []steps.Step{
			steps.Kill(redis), steps.Restart(redis), steps.Pause(redis), steps.Resume(redis),
		}},
		{name: "Redis is full", steps: []steps.Step{steps.Fill(url), steps.Drain(url)}},
		{name: "replicas are killed while they read", calls: 10, steps: []steps.Step{
			archive(slow), steps.Kill(both[0]), steps.Both(steps.Restart(both[0]), steps.Pause(both[1])), steps.Resume(both[1]),
			steps.Kill(both...), steps.Restart(both...),
		}},
		{name: "everything at once", steps: []steps.Step{
			steps.Both(archive(w.weather()...), tests(w, testkube.Slow(100*time.Millisecond))), steps.Both(steps.Kill(redis), steps.Kill(both[1])),
			steps.Both(steps.Restart(redis), steps.Restart(both[1])),
		}, anew: true},
		{name: "the SQL of lists fails", felt: failed, steps: []steps.Step{archive(results.Fault{Path: "creationTimestamp+%3E", Empty: true})}},
	}
}

// nowAndThen gives faults that meet about one request in n.
func (w *world) nowAndThen(f results.Fault, n int) []results.Fault {
	w.mu.Lock()
	defer w.mu.Unlock()
	var all []results.Fault
	for range 2000 {
		f.Skip, f.Times = w.rand.IntN(2*n), 1
		all = append(all, f)
	}
	return all
}

// weather gives faults of all kinds.
func (w *world) weather() []results.Fault {
	kinds := []results.Fault{
		{Delay: 200 * time.Millisecond}, {Status: http.StatusBadGateway}, {Status: http.StatusServiceUnavailable}, {Cut: 500}, {Cut: 3000},
	}
	var all []results.Fault
	for i, f := range w.nowAndThen(results.Fault{}, 2) {
		kind := kinds[i%len(kinds)]
		kind.Skip, kind.Times = f.Skip, f.Times
		all = append(all, kind)
	}
	return all
}

// tests has Testkube fail: all of it, or lists and details each in a way of its own.
func tests(w *world, each ...testkube.Fault) steps.Step {
	return func(context.Context) error {
		for i, part := range []testkube.Part{testkube.List, testkube.Detail, testkube.Artifacts, testkube.Download} {
			w.gw.Testkube.On(part, each[min(i, len(each)-1)])
		}
		return nil
	}
}

// rule: R033, R034, R043, R046
func TestWhateverFailsAnArchivedReadIsWholeAndTrueOrRefused(t *testing.T) {
	w := newWorld(t)
	w.warmed(t)
	t.Run("each thing is read once", func(t *testing.T) { eachIsReadOnce(t, w) })
	ctx, leave := context.WithCancel(t.Context())
	var asking []chan struct{}
	for i := range callers {
		gone := make(chan struct{})
		asking = append(asking, gone)
		c := newCaller(w.gw.URL, w.token, uint64(i+1))
		go func() { defer close(gone); w.ask(ctx, c) }()
	}
	defer func() {
		leave()
		for _, gone := range asking {
			<-gone
		}
	}()
	end := w.changes(t)
	defer end()
	t.Run("all is well", func(t *testing.T) { allIsWell(t, w) })
	for _, f := range faults(w) {
		t.Run(f.name, func(t *testing.T) { f.run(t, w) })
	}
}

// allIsWell has nobody be refused. A slow machine may fail a few.
func allIsWell(t *testing.T, w *world) {
	w.forgetCounts()
	w.more(t, 250)
	w.unbroken(t)
	c, failed := w.counted(), 0
	for _, n := range c.failed {
		failed += n
	}
	if failed+c.broke > 15 {
		t.Errorf("without a fault calls failed: %v", c)
	}
	const operations = 7
	if len(c.answered) != operations {
		t.Errorf("of %d operations these were answered: %v", operations, c.answered)
	}
	t.Log(c)
}

func (f fault) run(t *testing.T, w *world) {
	began := time.Now()
	calls := cmp.Or(f.calls, someCalls)
	w.forgetCounts()
	w.more(t, calls)
	for _, s := range f.steps {
		if err := s(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.more(t, calls)
	}
	if f.felt != "" {
		eventually(t, "somebody feels it", func() error {
			if c := w.counted(); c.failed[f.felt] == 0 {
				return fmt.Errorf("what came is %v", c)
			}
			return nil
		})
	}
	if f.anew {
		w.anew(t, w.apps[1])
		w.more(t, calls)
	}
	w.gw.Results.SetFaults()
	if err := tests(w, nil)(t.Context()); err != nil {
		t.Fatal(err)
	}
	mended := time.Now()
	w.back(t)
	w.unbroken(t)
	t.Logf("%.1f s, and %.1f s until service was back: %v", time.Since(began).Seconds(), time.Since(mended).Seconds(), w.counted())
}

// back waits until service is back: everything that was asked for in the fault is answered, and so is what nobody asked for
// before.
func (w *world) back(t *testing.T) {
	t.Helper()
	const most = 12
	w.mu.Lock()
	var all []question
	for _, q := range w.recent {
		if all = append(all, q); len(all) == most {
			break
		}
	}
	for i, a := range w.apps {
		g := a.now()
		all = append(all, w.askList(a, w.hours(), 90-i, false), w.askList(a, w.hours(), 60-i, true), w.askFleet(a, w.hours(), 80-i, i == 0),
			w.askRun(g.runs[len(g.runs)-1]), w.askExplanation(g.runs[0]), w.askLog(g.runs[0].tasks[0]), w.askTests(a))
	}
	w.mu.Unlock()
	c := newCaller(w.gw.URL, w.token, 99)
	c.patient = true
	defer c.http.CloseIdleConnections()
	for _, q := range all {
		eventually(t, q.path+" is answered", func() error {
			failed, err := w.put(t.Context(), c, q)
			if failed != "" {
				return fmt.Errorf("it fails by %s", failed)
			}
			return err
		})
	}
}
