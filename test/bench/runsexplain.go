package bench

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/test/bench/figures"
)

const rowExplain = "explain_10mb_ms"

// longLog is how long the log of a failed step is: of lines as a build writes them, none of which says what is known.
const longLog = 10 << 20

// measureExplain asks why runs failed whose failed step has a long log, each for the first time.
func measureExplain(ctx context.Context, w *World) ([]figures.Figure, error) {
	a, err := w.archiveGateway(ctx)
	if err != nil {
		return nil, err
	}
	namespace, err := a.APIServer.Client.CoreV1().Namespaces().Get(ctx, archivedNamespace, metav1.GetOptions{})
	if err != nil {
		return nil, err
	}
	size := longLog
	if w.options.Quick {
		size = 1 << 20
	}
	log := buildLog(size)
	var took []float64
	for i := range w.runs(7) {
		uid, err := a.failed(fmt.Sprintf("failed-%d", i), namespace.CreationTimestamp.Add(time.Second), log)
		if err != nil {
			return nil, fmt.Errorf("archiving a failed run: %w", err)
		}
		began := time.Now()
		if _, err := w.cold(ctx, a, "/v1/apps/"+archivedApp+"/runs/"+uid+"/explain"); err != nil {
			return nil, err
		}
		took = append(took, milliseconds(time.Since(began)))
	}
	return []figures.Figure{
		{Name: rowExplain, Value: figures.Median(took)}, {Name: rowExplain + "_worst", Value: slices.Max(took)}, {Name: "explain_log_mb", Value: float64(size) / (1 << 20)},
	}, nil
}

// failed archives a run with one TaskRun whose step failed, and that step's log.
func (a *archives) failed(name string, at time.Time, log []byte) (uid string, err error) {
	chance := rand.New(rand.NewPCG(uint64(len(name)), uint64(name[len(name)-1]))) //nolint:gosec // other objects than those before are what is wanted
	run, task := archivedObject(chance, "PipelineRun", name, at), archivedObject(chance, "TaskRun", name+"-test", at)
	of := map[string]any{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "name": run.name, "uid": run.uid}
	task.metadata["ownerReferences"], task.metadata["labels"] = []any{of}, map[string]any{"tekton.dev/pipelineRun": run.name, "tekton.dev/pipelineTask": "test"}
	failed := []any{map[string]any{"type": "Succeeded", "status": "False", "reason": "Failed", "message": `"step-test" exited with code 1`}}
	for _, o := range []archived{run, task} {
		status, ok := o.object["status"].(map[string]any)
		if !ok {
			return "", fmt.Errorf("%s has no status", o.name)
		}
		status["conditions"] = failed
		status["steps"] = []any{map[string]any{"name": "test", "container": "step-test", "terminated": map[string]any{"exitCode": 1}}}
		if err := a.archive(o, run.uid, at); err != nil {
			return "", err
		}
	}
	return run.uid, a.Results.ArchiveLog(archivedNamespace, run.uid, task.uid, log, at)
}

func buildLog(size int) []byte {
	var b bytes.Buffer
	for i := 0; b.Len() < size; i++ {
		fmt.Fprintf(&b, "[test] 2026-01-02T03:04:05Z compiling module %d of the service with flags -O2 -g, %d objects up to date\n", i, i*7)
	}
	return b.Bytes()
}
