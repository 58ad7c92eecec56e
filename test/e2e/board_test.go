package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"hangar.io/glidepath/internal/chromium"
)

// patch changes an object, or its status.
func patch(t *testing.T, gvr schema.GroupVersionResource, namespace, name string, change object, subresource ...string) {
	t.Helper()
	raw, err := json.Marshal(change)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := cluster(t).Resource(gvr).Namespace(namespace).Patch(t.Context(), name, types.MergePatchType, raw, metav1.PatchOptions{}, subresource...); err != nil {
		t.Fatal(err)
	}
}

// stands gives a status with a condition.
func stands(status, reason string) object {
	return object{"status": object{
		"startTime":  "2026-11-29T10:00:00Z",
		"conditions": []object{{"type": "Succeeded", "status": status, "reason": reason}},
	}}
}

// column says that a column of the board has a run.
func column(id, run string) string {
	return fmt.Sprintf("document.querySelector('#%s > .run[data-name=%q]') !== null", id, run)
}

// A person opens the board in a browser, pastes a token, and sees the cluster's runs as they change, also when the replica behind
// the stream is replaced, and a log as it is written.
func TestTheBoardShowsRealRunsAsTheyChange(t *testing.T) {
	const namespace, run = "app-shop-cicd", "e2e-board"
	create(t, pipelineRuns, "PipelineRun", namespace, run, nil)
	p := chromium.Open(t, gw.URL+"/board")
	p.Fill("#app", "shop")
	p.Fill("#token", tokens["reader"])
	p.Click("#open button")
	p.Becomes(column("waiting", run))
	cards := chromium.Eval[string](p, "JSON.stringify([...document.querySelectorAll('.run')].map(e => e.dataset.name))")
	var shown []string
	if err := json.Unmarshal([]byte(cards), &shown); err != nil {
		t.Fatal(err)
	}
	var want []string
	for name := range maps.Keys(listed(t, pipelineRuns, namespace)) {
		want = append(want, strings.TrimPrefix(name, namespace+"/"))
	}
	slices.Sort(shown)
	slices.Sort(want)
	if !slices.Equal(shown, want) {
		t.Errorf("the board has %v, the cluster %v", shown, want)
	}
	patch(t, pipelineRuns, namespace, run, stands("Unknown", "Running"), "status")
	p.Becomes(column("running", run))

	boardFollowsALog(t, p, run)
	p.Quiet()

	if err := gw.Livehubs[0].Process.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	patch(t, pipelineRuns, namespace, run, stands("True", "Succeeded"), "status")
	p.Becomes(column("good", run))
	p.Becomes("document.getElementById('status').textContent.startsWith('Watching')")
	if err := cluster(t).Resource(pipelineRuns).Namespace(namespace).Delete(t.Context(), run, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p.Becomes("!(" + column("good", run) + ")")
}

// boardFollowsALog opens the log of a step of the run and sees it grow and end.
func boardFollowsALog(t *testing.T, p *chromium.Page, run string) {
	t.Helper()
	x := newTask(t, "shop", run+"-unit")
	x.write("first")
	patch(t, taskRuns, x.namespace, x.name, object{"metadata": object{"labels": object{"tekton.dev/pipelineRun": run}}})
	patch(t, taskRuns, x.namespace, x.name, object{"status": object{
		"steps": []object{{"name": "test", "container": "step-test", "running": object{"startedAt": "2026-11-29T10:00:00Z"}}},
	}}, "status")
	step := fmt.Sprintf("[aria-label=\"Log of step test of %s\"]", x.name)
	p.Becomes(fmt.Sprintf("document.querySelector('%s') !== null", step))
	p.Click(step)
	lines := func(n int) string { return fmt.Sprintf("document.querySelectorAll('#lines > div').length === %d", n) }
	p.Becomes(lines(1))
	x.log.Append(wroteAt, []byte("second"))
	p.Becomes(lines(2))
	if got := chromium.Eval[string](p, "document.getElementById('lines').textContent"); !strings.HasSuffix(got, "second") || !strings.Contains(got, "first") {
		t.Errorf("the log is %q", got)
	}
	x.end()
	p.Becomes("document.getElementById('log-state').textContent === 'ended'")
}
