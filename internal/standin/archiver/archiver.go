// Package archiver stands in for the watcher of Tekton Results: what has finished
// in a cluster is stored in an archive, with the logs of its steps.
package archiver

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/simulator/life"
	"hangar.io/glidepath/internal/standin/results"
)

// every is how often the cluster is looked at.
const every = 3 * time.Second

// Archiver stores what has finished. It is for one goroutine.
type Archiver struct {
	client dynamic.Interface
	to     *results.Server
	every  time.Duration
	// stored has the resourceVersion of what is stored, by uid.
	stored map[string]string
}

// New gives an archiver of the cluster, with the rights of cfg.
func New(cfg *rest.Config, to *results.Server) (*Archiver, error) {
	client, err := dynamic.NewForConfig(cfg)
	if err != nil {
		return nil, fmt.Errorf("archiving runs: %w", err)
	}
	return &Archiver{client: client, to: to, every: every, stored: map[string]string{}}, nil
}

// Run stores what finishes until ctx ends.
func (a *Archiver) Run(ctx context.Context) {
	ticker := time.NewTicker(a.every)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if err := a.Sweep(ctx); err != nil && ctx.Err() == nil {
			slog.WarnContext(ctx, "what has finished was not archived", "error", err)
		}
	}
}

// Sweep stores what has finished by now.
func (a *Archiver) Sweep(ctx context.Context) error {
	seen := map[string]string{}
	for _, resource := range []string{"pipelineruns", "taskruns"} {
		list, err := a.client.Resource(schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: resource}).List(ctx, metav1.ListOptions{})
		if err != nil {
			return fmt.Errorf("archiving %s: %w", resource, err)
		}
		for i := range list.Items {
			o := &list.Items[i]
			uid, version := string(o.GetUID()), o.GetResourceVersion()
			if a.stored[uid] != version {
				if err := a.store(o); err != nil {
					return fmt.Errorf("archiving %s: %w", resource, err)
				}
			}
			seen[uid] = version
		}
	}
	a.stored = seen
	return nil
}

// store stores an object that has finished, and a TaskRun's log.
func (a *Archiver) store(o *unstructured.Unstructured) error {
	end, ok, err := unstructured.NestedString(o.Object, "status", "completionTime")
	if err != nil || !ok {
		return err
	}
	at, err := time.Parse(time.RFC3339, end)
	if err != nil {
		return err
	}
	raw, err := json.Marshal(o.Object)
	if err != nil {
		return err
	}
	result, err := a.to.Archive(raw)
	if err != nil || o.GetKind() != life.KindTaskRun {
		return err
	}
	task := &life.TaskRun{}
	if err := life.Decode(o, task); err != nil {
		return err
	}
	return a.to.ArchiveLog(o.GetNamespace(), result, string(o.GetUID()), logOf(task), at)
}
