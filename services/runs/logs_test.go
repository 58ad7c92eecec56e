package runs

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/runs/results"
)

func (w *world) getLog(id, taskRun string) *httptest.ResponseRecorder {
	return w.get("/v1/apps/shop/runs/"+id+"/logs/"+taskRun, about("getRunLogs"))
}

// withLog archives a run with a TaskRun and its log.
func (w *world) withLog(text string) {
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, w.now)}
	w.archive.tasks = []results.Record{taskRun(shopNamespace, 1, 1, w.now), taskRun(shopNamespace, 1, 2, w.now)}
	w.archive.logs = map[string]string{w.archive.tasks[0].UID: text}
}

// rule: R011
func TestALogIsAnsweredAsText(t *testing.T) {
	w := newWorld(t)
	text := "[clone] ok\n\n[compile] \x1b[31mno\x1b[0m \xff <b>\n" + strings.Repeat("[test] a line\n", 5000)
	w.withLog(text)
	got := w.getLog(uidOf(1), "run-1-task-1")
	if got.Code != http.StatusOK || got.Body.String() != text {
		t.Errorf("got %d, %d bytes: %.100q", got.Code, got.Body.Len(), got.Body)
	}
	for name, want := range map[string]string{"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff", "Cache-Control": "private, no-cache"} {
		if h := got.Header().Get(name); h != want {
			t.Errorf("%s is %q", name, h)
		}
	}
	if got.Header().Get("ETag") == "" {
		t.Error("it has no tag")
	}
}

// rule: R400, R397
func TestALogThatWasNotArchivedIsToldFromARunThatIsNotThere(t *testing.T) {
	w := newWorld(t)
	w.withLog("text")
	for name, tc := range map[string]struct {
		run, task string
		want      problem.Rule
	}{
		"a TaskRun without a log":            {uidOf(1), "run-1-task-2", problem.LogNotFound},
		"a TaskRun that the run has not":     {uidOf(1), "run-1-task-3", problem.NotFound},
		"a TaskRun by the name of its task":  {uidOf(1), "task-1", problem.NotFound},
		"a run that is not there":            {uidOf(7), "run-1-task-1", problem.NotFound},
		"a TaskRun of another run of theirs": {uidOf(1), "run-2-task-1", problem.NotFound},
	} {
		t.Run(name, func(t *testing.T) { w.refused(w.getLog(tc.run, tc.task), tc.want) })
	}
}

// rule: R034
func TestALogOfARunThatIsNotTheAppsIsNotFound(t *testing.T) {
	w := newWorld(t)
	w.withLog("text")
	w.cluster.add(shopNamespace, shopUID, w.now.Add(time.Second))
	w.refused(w.getLog(uidOf(1), "run-1-task-1"), problem.NotFound)
	if slices.ContainsFunc(w.archive.asked, func(s string) bool { return strings.HasPrefix(s, "log ") }) {
		t.Errorf("the archive was asked for %q", w.archive.asked)
	}
}

// rule: R393
func TestWhatIsNoNameOfATaskRunReachesNoSource(t *testing.T) {
	w := newWorld(t)
	for _, name := range []string{"A", "-", "a_b", "a..b", strings.Repeat("a", 64), "a%20b", "a'b", "a:b", "é"} {
		w.refused(w.getLog(uidOf(1), name), problem.BadRequest)
	}
	w.refused(w.getLog("run-1", "run-1-task-1"), problem.BadRequest)
	if len(w.archive.asked) > 0 || len(w.cluster.asked) > 0 {
		t.Errorf("the archive was asked for %q, the cluster for %q", w.archive.asked, w.cluster.asked)
	}
}
