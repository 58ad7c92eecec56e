package runs

import (
	"context"
	"fmt"
	"iter"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
)

// rule: R044
func TestAListThatIsReadForLongerThanItIsKeptIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stocked(t)
		w.server.documents = keep(t, nil, func(c *Config) { c.FillTime = cache.MaxFillTime })
		w.server.wait = 10 * time.Second
		archive := w.slowly()
		time.AfterFunc(65*time.Second, func() { close(archive.gate) })
		w.refused(w.get(oneList, about("listRuns")), problem.SourceFailed) // and the reading goes on
		time.Sleep(55*time.Second + time.Minute - time.Second)
		if n := w.reads(func() { w.body(oneList, "") }); n != 0 {
			t.Errorf("a second before its time is over %d requests are made", n)
		}
	})
}

// naming has a run name the TaskRuns that it made, and what is none.
func naming(names ...string) func(map[string]any) {
	all := []any{map[string]any{"kind": "CustomRun", "name": "approval", "apiVersion": "example.org/v1"}}
	for _, name := range names {
		all = append(all, map[string]any{"kind": "TaskRun", "name": name, "pipelineTaskName": "unit"})
	}
	return func(o map[string]any) { o["status"].(map[string]any)["childReferences"] = all }
}

// status sets a part of a run's status.
func status(name string, value any) func(map[string]any) {
	return func(o map[string]any) { o["status"].(map[string]any)[name] = value }
}

// only makes run 1, an hour old, the only one.
func only(change ...func(map[string]any)) func(*world) {
	return func(w *world) {
		w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, w.now.Add(-time.Hour), change...)}
	}
}

// halves are ways in which the archive may have more of a run that ended an hour ago.
func halves() map[string]func(*world) {
	return map[string]func(*world){
		"one that has just ended": func(w *world) {
			w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, w.now.Add(-settling))}
		},
		"one that was stored just now": func(w *world) { w.archive.runs[0].Stored = w.now.Add(-settling) },
		"one with a TaskRun that has not finished": func(w *world) {
			w.archive.tasks = append(w.archive.tasks, taskRun(shopNamespace, 1, 2, w.now.Add(-time.Hour), ended("Unknown", "Running")))
		},
		"one with a TaskRun that is not archived":              only(naming("run-1-task-1", "run-1-task-2")),
		"one of old with a TaskRun that is not archived":       only(status("taskRuns", map[string]any{"run-1-task-1": nil, "run-1-task-2": map[string]any{}})),
		"one with a TaskRun that is archived as another run's": func(w *world) { only(naming("run-1-task-1", "run-1-task-2"))(w); w.elsewhere() },
		"one that names what nobody can read":                  only(status("childReferences", map[string]any{"a": 1})),
		"one that names a TaskRun without a name":              only(naming("run-1-task-1", "")),
		"one of old that names what nobody can read":           only(status("taskRuns", []any{"run-1-task-1"})),
		"one that does not say when it ended":                  only(func(o map[string]any) { delete(o["status"].(map[string]any), "completionTime") }),
	}
}

// elsewhere archives a second TaskRun of run 1, in a Result that is not the run's.
func (w *world) elsewhere() {
	other := taskRun(shopNamespace, 1, 2, w.now.Add(-time.Hour))
	other.Name = strings.Replace(other.Name, "results/"+uidOf(1), "results/"+uidOf(2), 1)
	w.archive.tasks = append(w.archive.tasks, other)
}

// rule: R040, R042
func TestARunThatMayNotBeWholeIsKeptNoLongerThanAList(t *testing.T) {
	wholes := map[string]func(*world){
		"one that is whole":                            func(*world) {},
		"one whose TaskRuns are there":                 only(naming("run-1-task-1")),
		"one of old whose TaskRuns are there":          only(status("taskRuns", map[string]any{"run-1-task-1": map[string]any{"status": map[string]any{}}})),
		"one that was stored late, some time ago":      func(w *world) { w.archive.runs[0].Stored = w.now.Add(-settling - time.Second) },
		"one of which nobody knows when it was stored": func(w *world) { w.archive.runs[0].Stored = time.Time{} },
	}
	for _, target := range []string{oneRun, oneLog} {
		for short, changes := range map[bool]map[string]func(*world){false: wholes, true: halves()} {
			for name, change := range changes {
				t.Run(opOf(target)+" of "+name, func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						w := stocked(t)
						change(w)
						w.body(target, "")
						time.Sleep(listAge - time.Second)
						if n := w.reads(func() { w.body(target, "") }); n != 0 {
							t.Errorf("after less than a minute %d requests are made", n)
						}
						time.Sleep(2 * time.Second)
						if n := w.reads(func() { w.body(target, "") }); (n > 0) != short {
							t.Errorf("after more than a minute %d requests are made", n)
						}
					})
				})
			}
		}
	}
}

func TestATaskRunThatIsArchivedLaterIsSeen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := stocked(t)
		only(naming("run-1-task-1", "run-1-task-2"))(w)
		w.body(oneRun, "")
		w.refused(w.getLog(uidOf(1), "run-1-task-2"), problem.NotFound)
		w.archive.tasks = append(w.archive.tasks, taskRun(shopNamespace, 1, 2, w.now))
		w.archive.logs[uidOf(1002)] = "late\n"
		time.Sleep(missingAge + time.Second)
		// What is kept for a minute is the run, and not that it has no such log.
		if got := w.getLog(uidOf(1), "run-1-task-2"); got.Body.String() != "late\n" {
			t.Errorf("its log is %s", got.Body)
		}
		if got := w.explainRun(uidOf(1)); !strings.Contains(got.Body.String(), "run-1-task-2") {
			t.Errorf("the explanation is %s", got.Body)
		}
		time.Sleep(listAge + time.Second)
		if body, _ := w.body(oneRun, ""); !strings.Contains(body, "run-1-task-2") {
			t.Error("it is not")
		}
	})
}

// rule: R033
func TestARunIsShownForThirtyDays(t *testing.T) {
	for _, target := range []string{oneRun, oneLog, oneRun + "/explain"} {
		t.Run(target[len(oneRun):], func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := stocked(t)
				made := w.now.Add(-results.MaxWindow + 10*time.Minute)
				w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, made)}
				w.archive.tasks = []results.Record{taskRun(shopNamespace, 1, 1, made)}
				pass := func(d time.Duration) { time.Sleep(d); w.now = w.now.Add(d) }
				pass(9 * time.Minute)
				w.body(target, "")
				if pass(2 * time.Minute); len(w.shop("?sinceHours=720")) != 0 {
					t.Fatal("a list has it")
				}
				w.refused(w.get(target, about(opOf(target))), problem.NotFound)
			})
		})
	}
}

// still is an archive whose full lists do not come.
type still struct {
	*archived

	reading atomic.Int32
	gate    chan struct{}
}

func (s *still) PipelineRuns(ctx context.Context, namespace string, since time.Time) iter.Seq2[results.Record, error] {
	return func(yield func(results.Record, error) bool) {
		s.reading.Add(1)
		defer s.reading.Add(-1)
		select {
		case <-s.gate:
			s.archived.PipelineRuns(ctx, namespace, since)(yield)
		case <-ctx.Done():
			yield(results.Record{}, ctx.Err())
		}
	}
}

func TestFullListsAreReadFewAtATimeAndKeepNothingElseUp(t *testing.T) {
	const apps, more = heavyWaits + heavyReads, 6
	synctest.Test(t, func(t *testing.T) {
		w := stocked(t)
		archive := &still{archived: w.archive, gate: make(chan struct{})}
		w.server.archive = archive
		start := time.Now()
		var mu sync.Mutex
		got := map[string]int{}
		var all sync.WaitGroup
		for i := range apps + more {
			claims := w.app(i)
			all.Go(func() {
				rec := w.get(oneList+"?view=full", claims)
				mu.Lock()
				defer mu.Unlock()
				got[fmt.Sprintf("%d after %s", rec.Code, time.Since(start))]++
			})
		}
		synctest.Wait()
		if n := archive.reading.Load(); n != heavyReads {
			t.Errorf("%d full lists are read", n)
		}
		for _, target := range []string{oneList, oneRun, oneLog} {
			if w.body(target, ""); time.Since(start) != 0 {
				t.Errorf("%s waited", target)
			}
		}
		all.Wait()
		// The last ones got a turn, and no answer in time.
		want := map[string]int{"503 after 0s": more, "503 after 30s": heavyWaits, "502 after 1m0s": heavyReads}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("got %v, want %v", got, want)
		}
		close(archive.gate)
		synctest.Wait()
		if rec := w.get(fullAll, about("listRuns")); rec.Code != http.StatusOK {
			t.Errorf("afterwards: %d %s", rec.Code, rec.Body)
		}
	})
}

// rule: R046
func TestAnotherReplicasReadIsWaitedForAsLongAsItMayTake(t *testing.T) {
	t.Parallel()
	const fill = 6 * time.Second
	m := miniredis.RunT(t)
	w := stocked(t)
	archive := w.slowly()
	other := *w
	server := *w.server
	other.server = &server
	for _, s := range []*world{w, &other} {
		s.server.documents = keep(t, redisOf(t, m), func(c *Config) { c.FillTime = fill })
	}
	var all sync.WaitGroup
	all.Go(func() { w.body(oneList, "") })
	<-archive.began
	all.Go(func() { other.body(oneList, "") })
	time.AfterFunc(fill*6/10, func() { close(archive.gate) })
	all.Wait()
	if asked := w.requests(); len(asked) != 1 {
		t.Errorf("the archive was asked %q", asked)
	}
}

// Whoever asks for a run gets the same TaskRuns from a list and by itself.
func TestATaskRunThatOnlyNamesItsRunIsOfOneThatMayHaveMadeIt(t *testing.T) {
	w := newWorld(t)
	nameless := func(n int) func(map[string]any) {
		return func(o map[string]any) {
			meta := o["metadata"].(map[string]any)
			delete(meta, "ownerReferences")
			meta["labels"] = map[string]any{"tekton.dev/pipelineRun": "again"}
			meta["name"] = fmt.Sprintf("task-of-%d", n)
		}
	}
	named := func(o map[string]any) { o["metadata"].(map[string]any)["name"] = "again" }
	young, old := w.now.Add(-time.Hour), w.now.Add(-2*time.Hour)
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 2, young, named), pipelineRun(shopNamespace, 1, old, named)}
	early := taskRun(shopNamespace, 2, 2, old, nameless(1)) // in the Result of the run that is younger than it
	w.archive.tasks = []results.Record{
		taskRun(shopNamespace, 2, 1, young.Add(time.Second), nameless(2)), taskRun(shopNamespace, 1, 1, old.Add(time.Second), nameless(1)), early,
	}
	list := string(w.ok(w.get(fullAll, about("listRuns")), "RunList"))
	var parts []string
	for _, n := range []int{2, 1} {
		run, _ := w.body("/v1/apps/shop/runs/"+uidOf(n), "")
		if strings.Count(run, `"name":"task-of-`) != 1 || !strings.Contains(run, fmt.Sprintf("task-of-%d", n)) {
			t.Errorf("run %d is %s", n, run)
		}
		parts = append(parts, run)
	}
	if want := `{"runs":[` + strings.Join(parts, ",") + "]}"; list != want {
		t.Errorf("the list is\n%s\nwant\n%s", list, want)
	}
}
