package runs

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/problem"
)

// rule: R033
func TestTheFleetsListHasNothingOfAnAppThatWasMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fleet()
		gate := func() (n int) {
			for _, r := range w.list("/v1/runs", fleetWide()) {
				if r["app"] == "gate-api" {
					n++
				}
			}
			return n
		}
		if gate() != 1 {
			t.Fatal("the app has no run")
		}
		w.cluster.add("app-gate-api-cicd", "another uid", w.now)
		time.Sleep(censusAge)
		if gate() != 0 {
			t.Error("the list has runs of the app before")
		}
	})
}

func TestTheFleetsListIsKeptWhateverOtherNamespacesThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fleet()
		w.list("/v1/runs", fleetWide())
		w.cluster.add("kube-something", "its uid", w.now)
		time.Sleep(censusAge)
		if n := w.reads(func() { w.list("/v1/runs", fleetWide()) }); n != 0 {
			t.Errorf("%d requests are made", n)
		}
	})
}

func TestManyCallsForTheFleetsListAskForNamespacesOnce(t *testing.T) {
	w := newWorld(t)
	w.fleet()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() { w.list("/v1/runs", fleetWide()) })
	}
	all.Wait()
	if n := len(w.cluster.asked); n < 1 || n > 3 { // one for each time that a census lasts
		t.Errorf("the cluster was asked %d times", n)
	}
}

func TestTheFleetsListWhileTheClusterCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.fleet()
		w.list("/v1/runs", fleetWide())
		w.cluster.fault = errors.New("away")
		time.Sleep(listAge / 2)
		w.list("/v1/runs", fleetWide())
		time.Sleep(listAge / 2)
		w.refused(w.get("/v1/runs", fleetWide()), problem.SourceFailed)
		w.cluster.fault = nil
		w.list("/v1/runs", fleetWide())
	})
}

// Runs that were made with the annotations of another are archived with it, and their TaskRuns may not be.
func TestTaskRunsThatAreNotArchivedWithTheirRun(t *testing.T) {
	w := newWorld(t)
	at := w.now.Add(-time.Hour)
	into := func(result string, n int) {
		rec := &w.archive.tasks[n]
		rec.Name = shopNamespace + "/results/" + result + "/records/" + rec.UID
	}
	for m := range 3 {
		w.archive.tasks = append(w.archive.tasks, taskRun(shopNamespace, 1, m+1, at.Add(time.Duration(m)*time.Second)))
	}
	run := pipelineRun(shopNamespace, 1, at)
	run.Name = shopNamespace + "/results/" + uidOf(2) + "/records/" + uidOf(2)
	w.archive.runs = append(w.archive.runs, run)
	into(uidOf(2), 0)
	into(uidOf(1), 1)
	into(uidOf(3), 2) // where nobody looks
	one := string(w.ok(w.getRun(uidOf(1)), "Run"))
	for name, there := range map[string]bool{`"run-1-task-1"`: true, `"run-1-task-2"`: true, `"run-1-task-3"`: false} {
		if strings.Contains(one, name) != there {
			t.Errorf("%s is there: %t", name, !there)
		}
	}
	if full := string(w.ok(w.get(fullAll, about("listRuns")), "RunList")); full != `{"runs":[`+one+"]}" {
		t.Errorf("the list has\n%s\nwant\n%s", full, one)
	}
}

func TestARunThatAnEventStartedIsArchivedInOnePlace(t *testing.T) {
	w := newWorld(t)
	run := pipelineRun(shopNamespace, 1, w.now.Add(-time.Hour), func(o map[string]any) {
		o["metadata"].(map[string]any)["labels"] = map[string]any{eventID: "event-1"}
	})
	run.Name = shopNamespace + "/results/event-1/records/" + run.UID
	w.archive.runs = append(w.archive.runs, run)
	w.ok(w.getRun(uidOf(1)), "Run")
	if want := []string{"run " + shopNamespace + "/" + uidOf(1), "tasks of " + shopNamespace + "/event-1"}; !slices.Equal(w.requests(), want) {
		t.Errorf("the archive was asked %q", w.requests())
	}
}
