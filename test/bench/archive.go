package bench

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"time"

	"github.com/google/uuid"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/standin/results"
)

// The app whose archived runs are read: a thousand runs with five TaskRuns each, 60 kB of JSON a run.
const (
	archivedApp       = "bench-archive"
	archivedNamespace = "app-" + archivedApp + "-cicd"
	archivedRuns      = 1000
	archivedTasks     = 5
	archivedParams    = 75 // of each object, which makes ten kilobytes
	runsReplicas      = 2
)

// archives is a gateway of its own for the rows of archived runs: two replicas of runs, at the API server and the Redis of
// the other. The archive is in this process.
type archives struct {
	*devenv.Gateway

	runs int // in the archive
}

// archiveGateway starts it when the first such row is measured.
func (w *World) archiveGateway(ctx context.Context) (*archives, error) {
	if w.archives != nil {
		return w.archives, nil
	}
	if err := w.APIServer.EnsureServiceAccount(ctx, archivedNamespace, "default"); err != nil {
		return nil, err
	}
	g, err := devenv.StartGateway(ctx, devenv.GatewayConfig{
		Dir: filepath.Join(w.options.Dir, "archive"), APIServer: w.APIServer, Redis: w.Redis, Race: w.options.Race, Progress: w.options.Progress,
		Runs: runsReplicas, PlannedTo: w.staticAddr,
		// What a warmer reads would come between.
		Args: map[string][]string{"xds": {w.collector}, "authz": {w.collector}, "runs": {w.collector, "--no-warm"}},
	})
	if err != nil {
		return nil, err
	}
	w.undo = append(w.undo, g.Stop)
	a := &archives{Gateway: g, runs: archivedRuns}
	if w.options.Quick {
		a.runs = 20
	}
	if err := a.fill(ctx); err != nil {
		return nil, fmt.Errorf("filling the archive: %w", err)
	}
	w.archives = a
	return a, nil
}

// fill archives the runs, the same ones every time, all since the namespace was made: earlier ones are not the app's.
func (a *archives) fill(ctx context.Context) error {
	namespace, err := a.APIServer.Client.CoreV1().Namespaces().Get(ctx, archivedNamespace, metav1.GetOptions{})
	if err != nil {
		return err
	}
	made := namespace.CreationTimestamp.Add(time.Second)
	chance := rand.New(rand.NewPCG(3, 4)) //nolint:gosec // the same bytes every time is what is wanted
	for i := range a.runs {
		run := archivedObject(chance, "PipelineRun", fmt.Sprintf("build-%04d", i), made)
		if err := a.archive(run, run.uid, made.Add(time.Duration(i)*10*time.Millisecond)); err != nil {
			return err
		}
		for k := range archivedTasks {
			task := archivedObject(chance, "TaskRun", fmt.Sprintf("%s-task-%d", run.name, k), made)
			task.metadata["ownerReferences"] = []any{map[string]any{"apiVersion": "tekton.dev/v1", "kind": "PipelineRun", "name": run.name, "uid": run.uid}}
			task.metadata["labels"] = map[string]any{"tekton.dev/pipelineRun": run.name}
			if err := a.archive(task, run.uid, made.Add(time.Duration(i)*10*time.Millisecond+time.Millisecond)); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *archives) archive(o archived, result string, at time.Time) error {
	value, err := json.Marshal(o.object)
	if err != nil {
		return err
	}
	return a.Results.PutRecord(results.Record{
		Parent: archivedNamespace, Result: result, Name: o.uid, Type: "tekton.dev/v1." + o.kind, Value: value, Created: at,
	})
}

// archived is an object as it is archived.
type archived struct {
	kind, name, uid  string
	object, metadata map[string]any
}

func archivedObject(chance *rand.Rand, kind, name string, at time.Time) archived {
	var raw [16]byte
	for i := range raw {
		raw[i] = byte(chance.UintN(256))
	}
	o := archived{kind: kind, name: name, uid: uuid.UUID(raw).String()}
	o.metadata = map[string]any{
		"name": name, "namespace": archivedNamespace, "uid": o.uid, "creationTimestamp": at.UTC().Format(time.RFC3339),
		"managedFields": []any{map[string]any{"manager": "controller", "operation": "Update", "time": at.UTC().Format(time.RFC3339)}},
	}
	o.object = map[string]any{
		"apiVersion": "tekton.dev/v1", "kind": kind, "metadata": o.metadata,
		"spec": map[string]any{"pipelineRef": map[string]any{"name": "build"}, "params": digests(chance, archivedParams)},
		"status": map[string]any{
			"startTime": at.UTC().Format(time.RFC3339), "completionTime": at.Add(time.Minute).UTC().Format(time.RFC3339),
			"conditions": []any{map[string]any{
				"type": "Succeeded", "status": "True", "reason": "Succeeded", "message": "Tasks Completed: 5 (Failed: 0, Cancelled 0), Skipped: 0",
			}},
		},
	}
	return o
}
