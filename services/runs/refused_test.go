package runs

import (
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
)

func TestThatSomethingIsMissingIsKnownForAFewSeconds(t *testing.T) {
	for name, tc := range map[string]struct {
		target string
		lose   func(*world)
		rule   problem.Rule
	}{
		"a run":                  {oneRun, func(w *world) { w.archive.runs = nil }, problem.NotFound},
		"the log of no TaskRun":  {oneRun + "/logs/nobody", only(naming("run-1-task-1", "nobody")), problem.NotFound},
		"a log":                  {oneLog, func(w *world) { w.archive.logs = nil }, problem.LogNotFound},
		"an explanation of none": {oneRun + "/explain", func(w *world) { w.archive.runs = nil }, problem.NotFound},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := stocked(t)
				runs, logs := w.archive.runs, w.archive.logs
				tc.lose(w)
				if len(w.archive.runs) > 0 {
					runs = w.archive.runs
				}
				claims := about(opOf(tc.target))
				first := w.get(tc.target, claims)
				w.refused(first, tc.rule)
				w.archive.runs, w.archive.logs = runs, logs
				time.Sleep(missingAge - time.Second)
				if n := w.reads(func() {
					if again := w.get(tc.target, claims); again.Code != first.Code || again.Body.String() != first.Body.String() {
						t.Errorf("it is %d %s, and was %s", again.Code, again.Body, first.Body)
					}
				}); n != 0 {
					t.Errorf("%d requests are made for it again", n)
				}
				time.Sleep(2 * time.Second)
				if n := w.reads(func() { w.get(tc.target, claims) }); n == 0 {
					t.Error("afterwards nobody looks for it")
				}
			})
		})
	}
}

// What failed may be there the next time.
func TestAFailureIsNotKept(t *testing.T) {
	w := stocked(t)
	w.archive.fault = results.ErrBadRecord
	w.refused(w.get(oneRun, about("getRun")), problem.SourceFailed)
	w.archive.fault = nil
	w.body(oneRun, "")
}
