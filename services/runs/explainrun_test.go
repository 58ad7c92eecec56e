package runs

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/problem"
	explained "hangar.io/glidepath/services/runs/explain"
	"hangar.io/glidepath/services/runs/results"
)

func failures(t testing.TB) *explained.Catalogue {
	t.Helper()
	c, err := explained.FromContract(api.Contract())
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (w *world) explainRun(id string) *httptest.ResponseRecorder {
	return w.get("/v1/apps/shop/runs/"+id+"/explain", about("explainRun"))
}

// exited gives a TaskRun a step that exited with a code, and the condition for it.
func exited(code int) func(map[string]any) {
	return func(o map[string]any) {
		status := "True"
		if code != 0 {
			status = "False"
		}
		o["metadata"].(map[string]any)["labels"].(map[string]any)["tekton.dev/pipelineTask"] = "unit"
		o["status"] = map[string]any{
			"conditions": []any{map[string]any{"type": "Succeeded", "status": status, "message": fmt.Sprintf("it exited with code %d", code)}},
			"steps":      []any{map[string]any{"name": "test", "container": "step-test", "terminated": map[string]any{"exitCode": code}}},
		}
	}
}

func (w *world) failedRun() {
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, w.now)}
	other := taskRun(shopNamespace, 2, 1, w.now, exited(1)) // of a run that shares the Result
	other.Name = strings.Replace(other.Name, uidOf(2), uidOf(1), 1)
	w.archive.tasks = []results.Record{
		taskRun(shopNamespace, 1, 1, w.now, exited(0)), taskRun(shopNamespace, 1, 2, w.now, exited(1)), other, taskRun(shopNamespace, 1, 3, w.now, exited(137)),
	}
	w.archive.logs = map[string]string{
		w.archive.tasks[0].UID: "[test] ok\n", w.archive.tasks[1].UID: "[test] --- FAIL: TestPays (0.01s)\n", other.UID: "[test] ok\n",
	}
}

// rule: R012, R293, R298
func TestARunIsExplainedByItsFailedTaskRuns(t *testing.T) {
	w := newWorld(t)
	w.failedRun()
	var got explanation
	if err := json.Unmarshal(w.ok(w.explainRun(uidOf(1)), "Explanation"), &got); err != nil {
		t.Fatal(err)
	}
	if got.Result != uidOf(1) || len(got.Failures) != 2 {
		t.Fatalf("%+v", got)
	}
	if f := got.Failures[0]; f.TaskRun != "run-1-task-2" || f.Task != "unit" || f.Step != "test" || f.KnownFailure.ID != "TestsFailed" ||
		f.Evidence != "--- FAIL: TestPays (0.01s)" || f.Log != explained.LogArchived {
		t.Errorf("%+v", f)
	}
	if f := got.Failures[1]; f.TaskRun != "run-1-task-3" || f.KnownFailure.ID != "OutOfMemory" || f.Log != explained.LogMissing {
		t.Errorf("%+v", f)
	}
	var logs []string
	for _, asked := range w.archive.asked {
		if strings.HasPrefix(asked, "log ") {
			logs = append(logs, asked)
		}
	}
	if len(logs) != 2 || strings.Contains(strings.Join(logs, " "), w.archive.tasks[0].UID) {
		t.Errorf("the logs that were read: %q", logs)
	}
}

func TestARunThatDidNotFailHasNothingToExplain(t *testing.T) {
	w := newWorld(t)
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, w.now, ended("True", "Succeeded"))}
	if body := w.ok(w.explainRun(uidOf(1)), "Explanation"); string(body) != `{"result":"`+uidOf(1)+`","failures":[]}`+"\n" {
		t.Errorf("%s", body)
	}
	w.refused(w.explainRun(uidOf(7)), problem.NotFound)
}

// rule: R034
func TestARunThatIsNotTheAppsIsNotExplained(t *testing.T) {
	w := newWorld(t)
	w.failedRun()
	w.archive.runs = append(w.archive.runs, pipelineRun("app-gate-api-cicd", 3, w.now), pipelineRun(shopNamespace, 4, w.now.AddDate(-2, 0, 0)))
	w.refused(w.explainRun(uidOf(3)), problem.NotFound) // another app's
	w.refused(w.explainRun(uidOf(4)), problem.NotFound) // of a namespace that was
}

// rule: R393
func TestWhatIsNoIDOfARunIsNotExplained(t *testing.T) {
	w := newWorld(t)
	for _, id := range []string{"run-1", strings.ToUpper(uidOf(1)), uidOf(1) + "0", "-", "..a"} {
		w.refused(w.explainRun(id), problem.BadRequest)
	}
	if len(w.archive.asked) > 0 || len(w.cluster.asked) > 0 {
		t.Errorf("the archive was asked for %q, the cluster for %q", w.archive.asked, w.cluster.asked)
	}
}

// rule: R299
func TestALogThatCannotBeServedFailsTheExplanation(t *testing.T) {
	w := newWorld(t)
	w.failedRun()
	w.archive.logFault = errors.New("what the source said")
	got := w.explainRun(uidOf(1))
	w.refused(got, problem.SourceFailed)
	if strings.Contains(got.Body.String(), "what the source said") {
		t.Errorf("%s", got.Body)
	}
	// It is not kept.
	w.archive.logFault = nil
	w.ok(w.explainRun(uidOf(1)), "Explanation")
}

// rule: R300
func TestAContractWithABrokenPatternStopsTheProcess(t *testing.T) {
	cfg := Config{
		Listen: "127.0.0.1:0", MetricsListen: "127.0.0.1:0", IdentityKeysDir: t.TempDir(), ResultsURL: "http://127.0.0.1:1", TestkubeURL: "http://127.0.0.1:1",
		SealKey: "x", CacheBytes: 1, PlainBytes: 1, SendBytes: minSendBytes, FillTime: time.Second, Redis: cache.Options{Time: time.Second}, Wait: time.Second,
	}
	cfg.TraceRatio = 1
	err := serve(t.Context(), cfg, []byte(`{"knownFailures":[{"id":"Broken","patterns":["a("],"hint":"x"}]}`))
	if err == nil || !strings.Contains(err.Error(), `Broken: pattern "a("`) {
		t.Errorf("%v", err)
	}
}
