package runs

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/services/runs/results"
)

const oneExplained = "/explain"

// withFailures is a world with a run whose TaskRuns have failed, in two Results.
func withFailures(t *testing.T) *world {
	t.Helper()
	w := stocked(t)
	at := w.now.Add(-time.Hour)
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, at, naming("run-1-task-1", "run-1-task-2", "run-1-task-3"))}
	into(&w.archive.runs[0], uidOf(9))
	w.archive.tasks = []results.Record{
		taskRun(shopNamespace, 1, 1, at.Add(3*time.Second), exited(1)), taskRun(shopNamespace, 1, 2, at.Add(2*time.Second), exited(0)),
		taskRun(shopNamespace, 1, 3, at.Add(time.Second), exited(137)),
	}
	into(&w.archive.tasks[2], uidOf(9))
	w.archive.logs = map[string]string{uidOf(1001): "[test] --- FAIL: TestPays (0.01s)\n", uidOf(1002): "[test] ok\n", uidOf(1003): "[test] killed\n"}
	return w
}

// into puts a record into a Result.
func into(r *results.Record, result string) {
	namespace, rest, _ := strings.Cut(r.Name, "/results/")
	_, record, _ := strings.Cut(rest, "/records/")
	r.Name = namespace + "/results/" + result + "/records/" + record
}

// everyLog gets the logs of the run and what explains it.
func (w *world) everyLog() string {
	w.t.Helper()
	var all strings.Builder
	for _, target := range []string{"/logs/run-1-task-1", "/logs/run-1-task-2", "/logs/run-1-task-3", oneExplained} {
		got := w.get(oneRun+target, about("getRunLogs"))
		if got.Code != http.StatusOK {
			w.t.Errorf("%s: got %d %s", target, got.Code, got.Body)
		}
		all.WriteString(got.Body.String())
	}
	return all.String()
}

// notLogs are the requests to the archive that are not for a log.
func (w *world) notLogs() []string {
	return slices.DeleteFunc(w.requests(), func(s string) bool { return strings.HasPrefix(s, "log ") })
}

// Logs and explanations are the same whichever way the run was read, which is once.
func TestARunIsReadOnceForAllThatIsAskedOfIt(t *testing.T) {
	once := []string{"run " + shopNamespace + "/" + uidOf(1), "tasks of " + shopNamespace + "/" + uidOf(9), "tasks of " + shopNamespace + "/" + uidOf(1)}
	w := withFailures(t)
	want := w.everyLog()
	if got := w.notLogs(); !slices.Equal(got, once) {
		t.Errorf("for its logs alone the archive is asked %q", got)
	}
	for _, part := range []string{"TestPays", "[test] ok\n", "[test] killed\n", "OutOfMemory", "TestsFailed"} {
		if !strings.Contains(want, part) {
			t.Errorf("nothing has %s: %s", part, want)
		}
	}
	t.Run("after the run itself", func(t *testing.T) {
		w := withFailures(t)
		w.body(oneRun, "")
		if got := w.everyLog(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if got := w.notLogs(); !slices.Equal(got, once) {
			t.Errorf("the archive is asked %q", got)
		}
	})
	t.Run("after a start", func(t *testing.T) {
		w := withFailures(t)
		w.warmUp()
		before := len(w.notLogs())
		if got := w.everyLog(); got != want {
			t.Errorf("got\n%s\nwant\n%s", got, want)
		}
		if got := w.notLogs()[before:]; len(got) > 0 {
			t.Errorf("the archive is asked %q", got)
		}
	})
}

// large is an archive of a run with large TaskRuns, which are made as they are read.
type large struct {
	*archived

	now  time.Time
	each int
}

func (l *large) TaskRunsOf(context.Context, string, string) iter.Seq2[results.Record, error] {
	text := filler()
	return func(yield func(results.Record, error) bool) {
		for m := range l.each {
			if !yield(taskRun(shopNamespace, 1, m+1, l.now, annotated(text(m, 300<<10)+strings.Repeat("x", 700<<10))), nil) {
				return
			}
		}
	}
}

func TestALogTakesNoneOfTheMemoryOfItsRun(t *testing.T) {
	const each, most = 100, 48 << 20 // of 100 MB
	for _, target := range []string{oneLog, oneRun + oneExplained} {
		w := stocked(t)
		w.server.archive = &large{w.archive, w.now.Add(-time.Hour), each}
		if grown := peakOf(func() { w.body(target, "") }); grown > most {
			t.Errorf("%s takes %d bytes of memory", target, grown)
		}
	}
}

// Whoever asks for a run gets the same from a list, by itself, and when it was warmed.
func TestWhatIsArchivedTwiceIsShownOnce(t *testing.T) {
	at := func(w *world) time.Time { return w.now.Add(-time.Hour) }
	second := func(r results.Record, result string, later time.Duration, change string) results.Record {
		into(&r, result)
		r.Stored = r.Stored.Add(later)
		r.Value = []byte(strings.Replace(string(r.Value), `"status":{`, fmt.Sprintf(`"status":{"which":%q,`, change), 1))
		return r
	}
	for name, tc := range map[string]struct {
		change func(*world)
		want   string
	}{
		"a run, in its own Result first": {func(w *world) {
			w.archive.runs = append(w.archive.runs, second(w.archive.runs[0], uidOf(9), time.Hour, "no"))
		}, ""},
		"a run, in two of others": {func(w *world) {
			run := w.archive.runs[0]
			w.archive.runs = []results.Record{second(run, uidOf(8), time.Minute, "later"), second(run, uidOf(9), 0, "no")}
		}, "later"},
		"a TaskRun": {func(w *world) {
			into(&w.archive.runs[0], uidOf(9))
			w.archive.tasks = append(w.archive.tasks, second(w.archive.tasks[0], uidOf(9), time.Minute, "later"))
		}, "later"},
		"a TaskRun that ended meanwhile": {func(w *world) {
			into(&w.archive.runs[0], uidOf(9))
			going := taskRun(shopNamespace, 1, 1, at(w).Add(time.Second), ended("Unknown", "Running"))
			w.archive.tasks = append(w.archive.tasks, second(going, uidOf(9), -time.Second, "no"))
		}, ""},
	} {
		for _, reversed := range []bool{false, true} {
			t.Run(fmt.Sprint(name, reversed), func(t *testing.T) {
				w := stocked(t)
				tc.change(w)
				if reversed && !strings.Contains(name, "two of others") { // which the archive gives in this order
					slices.Reverse(w.archive.runs)
					slices.Reverse(w.archive.tasks)
				}
				slices.SortStableFunc(w.archive.runs, func(a, b results.Record) int {
					if a.Result() == a.UID { // the client looks there first
						return -1
					}
					return 0
				})
				one, _ := w.body(oneRun, "")
				if strings.Count(one, `"name":"run-1-task-1"`) != 1 || strings.Contains(one, `"no"`) || !strings.Contains(one, tc.want) {
					t.Errorf("it is %s", one)
				}
				if full := string(w.ok(w.get(fullAll, about("listRuns")), "RunList")); full != `{"runs":[`+one+"]}" {
					t.Errorf("the list is\n%s\nwant\n%s", full, one)
				}
				w.server.documents = keep(t, nil)
				w.warmUp()
				if n := w.reads(func() {
					if warmed, _ := w.body(oneRun, ""); warmed != one {
						t.Errorf("warmed it is\n%s\nwant\n%s", warmed, one)
					}
				}); n != 0 {
					t.Errorf("%d requests are made", n)
				}
			})
		}
	}
}
