package results_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	standin "hangar.io/glidepath/internal/standin/results"
	"hangar.io/glidepath/services/runs/results"
)

// ofEvent archives a run of an event, whose Result has the event's name.
func (a archive) ofEvent(namespace string, n int, event string, created time.Time) {
	a.t.Helper()
	a.put(fmt.Sprintf(`{"kind":"PipelineRun","apiVersion":"tekton.dev/v1","metadata":{"name":"run-%d","namespace":%q,"uid":%q,"creationTimestamp":%q,`+
		`"labels":{"triggers.tekton.dev/triggers-eventid":%q}}}`, n, namespace, uid(n), created.Format(time.RFC3339), event))
}

// A run that is not under its UID is looked for in a list, which comes empty when its
// SQL fails. Nobody may take that for a run that never was.
func TestARunThatIsLookedForInAList(t *testing.T) {
	t.Parallel()
	const byUID = "data.metadata.uid" // a part of that filter
	for name, tt := range map[string]struct {
		runs   int // of the namespace, 0 stored last; run 55 is an event's
		bad    int // records that are stored after them
		ask    int
		faults []standin.Fault
		found  bool
		fails  bool
		asked  int
	}{
		"it is there": {runs: 60, ask: 55, found: true, asked: 4},
		"it is among those that were stored last": {runs: 56, ask: 55, found: true, asked: 3},
		"it is not there":                         {runs: 60, ask: 99, asked: 3},
		"its filter fails":                        {runs: 60, ask: 55, faults: []standin.Fault{{Path: byUID, Empty: true}}, fails: true, asked: 7},
		"its filter fails, and it is not there":   {runs: 60, ask: 99, faults: []standin.Fault{{Path: byUID, Empty: true}}, fails: true, asked: 7},
		"its filter fails once":                   {runs: 60, ask: 55, faults: []standin.Fault{{Path: byUID, Empty: true, Times: 1}}, found: true, asked: 6},
		"every filter fails":                      {runs: 60, ask: 55, faults: []standin.Fault{{Path: "filter=", Empty: true}}, fails: true, asked: 7},
		"there is nothing":                        {ask: 99, asked: 2},
		"there are many that cannot be read":      {runs: 2, bad: 60, ask: 99, asked: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchive(t, standin.Config{})
			for n := range tt.runs {
				created := now.Add(-time.Duration(n) * time.Hour)
				switch {
				case n != 55:
					a.run(shop, n, created)
				case tt.runs == 56: // stored last
					a.ofEvent(shop, n, "event-1", now.Add(time.Hour))
				default:
					a.ofEvent(shop, n, "event-1", created)
				}
			}
			for n := range tt.bad {
				a.record(1000+n, now.Add(time.Minute), "{", now.Add(time.Minute))
			}
			a.SetFaults(tt.faults...)
			r, err := a.client(results.Limits{}).PipelineRun(t.Context(), shop, uid(tt.ask))
			switch {
			case tt.fails:
				checkFailure(t, err, http.StatusOK)
			case tt.found && (err != nil || r.UID != uid(tt.ask) || r.Result() != "event-1" || strings.Contains(string(r.Value), "null")):
				t.Errorf("got %s of %q, %v: %s", r.UID, r.Result(), err, r.Value)
			case !tt.found && !errors.Is(err, results.ErrNotFound):
				t.Errorf("got %v", err)
			}
			if n := len(a.Requests()); n != tt.asked {
				t.Errorf("%d requests, want %d", n, tt.asked)
			}
		})
	}
}

// TaskRuns that are there are not none because a filter failed.
func TestTheTaskRunsOfAResultThatComeEmpty(t *testing.T) {
	t.Parallel()
	const taskRuns = "TaskRun" // a part of that filter
	for name, tt := range map[string]struct {
		result   int
		taskRuns []int
		faults   []standin.Fault
		fails    bool
		asked    int
	}{
		"there is no Result":    {result: 9, asked: 2},
		"there is the run only": {result: 1, asked: 3},
		"there are some":        {result: 1, taskRuns: []int{2}, asked: 1},
		"their filter fails":    {result: 1, taskRuns: []int{2}, faults: []standin.Fault{{Path: taskRuns, Empty: true}}, fails: true, asked: 6},
		"it fails once":         {result: 1, taskRuns: []int{2}, faults: []standin.Fault{{Path: taskRuns, Empty: true, Times: 1}}, asked: 4},
		"every list fails":      {result: 1, faults: []standin.Fault{{Path: "page_size=", Empty: true}}, fails: true, asked: 6},
		"the database is down":  {result: 1, faults: []standin.Fault{{Path: "page_size=", Empty: true}, {Status: http.StatusInternalServerError}}, fails: true, asked: 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := newArchive(t, standin.Config{})
			a.run(shop, 1, now)
			for _, n := range tt.taskRuns {
				a.taskRun(shop, n, 1, now)
			}
			a.SetFaults(tt.faults...)
			list := a.client(results.Limits{}).TaskRunsOf(t.Context(), shop, uid(tt.result))
			if tt.fails {
				_, err := uids(list)
				checkFailure(t, err, 0)
			} else {
				check(t, list, tt.taskRuns...)
			}
			if n := len(a.Requests()); n != tt.asked {
				t.Errorf("%d requests, want %d", n, tt.asked)
			}
		})
	}
}
