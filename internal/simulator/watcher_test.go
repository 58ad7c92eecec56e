package simulator_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"

	"hangar.io/glidepath/internal/simulator/life"
	"hangar.io/glidepath/internal/simulator/lifetest"
)

func pipelineRuns() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}
}

func taskRuns() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "taskruns"}
}

// world is what a watcher sees of a namespace. It checks every change against the table of what is legal.
type world struct {
	t         *testing.T
	namespace string
	client    dynamic.Interface
	late      bool        // the watch began when there were objects already, so that the first seen of one may be anything
	stopping  atomic.Bool // a watch that is stopped may say so as an error

	mu      sync.Mutex
	changed chan struct{} // closed and replaced at every event
	runs    map[string]*life.PipelineRun
	tasks   map[string]*life.TaskRun
	// ends counts the reasons of everything that has ever ended, reasons every reason ever seen, by kind and reason.
	ends, reasons map[string]int
	most          int // PipelineRuns not ended at one time
	events        int // of every kind
}

// watchNamespace makes the namespace and watches it until the test ends.
func watchNamespace(t *testing.T, namespace string) *world {
	t.Helper()
	if err := api.EnsureServiceAccount(t.Context(), namespace, "default"); err != nil {
		t.Fatal(err)
	}
	return watchRuns(t, namespace, false)
}

// watchRuns watches a namespace that is there until the test ends.
func watchRuns(t *testing.T, namespace string, late bool) *world {
	t.Helper()
	client, err := dynamic.NewForConfig(api.Admin)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{
		t: t, namespace: namespace, client: client, late: late, changed: make(chan struct{}),
		runs: map[string]*life.PipelineRun{}, tasks: map[string]*life.TaskRun{},
		ends: map[string]int{}, reasons: map[string]int{},
	}
	for _, resource := range []schema.GroupVersionResource{pipelineRuns(), taskRuns()} {
		events, err := client.Resource(resource).Namespace(namespace).Watch(context.WithoutCancel(t.Context()), metav1.ListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			for event := range events.ResultChan() {
				w.see(event)
			}
		}()
		t.Cleanup(func() {
			w.stopping.Store(true)
			events.Stop()
			<-ended
		})
	}
	return w
}

func (w *world) see(event watch.Event) {
	object, ok := event.Object.(*unstructured.Unstructured)
	if !ok {
		if !w.stopping.Load() {
			w.t.Errorf("watch: %v", event.Object)
		}
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.events++
	if object.GetKind() == life.KindPipelineRun {
		w.seeRun(event.Type, object)
	} else {
		w.seeTask(event.Type, object)
	}
	close(w.changed)
	w.changed = make(chan struct{})
}

func (w *world) seeRun(event watch.EventType, object *unstructured.Unstructured) {
	after, before := &life.PipelineRun{}, w.runs[object.GetName()]
	if err := life.Decode(object, after); err != nil {
		w.t.Error(err)
	}
	first := before == nil || before.UID != after.UID
	if first {
		before = &life.PipelineRun{}
	}
	if err := lifetest.PipelineRun(before, after); err != nil && !(first && w.late) {
		w.t.Errorf("PipelineRun %s: %v", after.Name, err)
	}
	w.note(life.KindPipelineRun, before.Status.Conditions, after.Status.Conditions)
	w.runs[after.Name] = after
	if event == watch.Deleted {
		delete(w.runs, after.Name)
	}
	open := 0
	for _, run := range w.runs {
		if !run.Status.Conditions.Done() {
			open++
		}
	}
	w.most = max(w.most, open)
}

func (w *world) seeTask(event watch.EventType, object *unstructured.Unstructured) {
	after, before := &life.TaskRun{}, w.tasks[object.GetName()]
	if err := life.Decode(object, after); err != nil {
		w.t.Error(err)
	}
	first := before == nil || before.UID != after.UID
	if first {
		before = &life.TaskRun{}
	}
	if err := lifetest.TaskRun(before, after); err != nil && !(first && w.late) {
		w.t.Errorf("TaskRun %s: %v", after.Name, err)
	}
	w.note(life.KindTaskRun, before.Status.Conditions, after.Status.Conditions)
	w.tasks[after.Name] = after
	if event == watch.Deleted {
		delete(w.tasks, after.Name)
	}
}

func (w *world) note(kind string, before, after life.Conditions) {
	reason := after.Succeeded().Reason
	if reason == before.Succeeded().Reason {
		return
	}
	w.reasons[kind+" "+reason]++
	if after.Done() {
		w.ends[kind+" "+reason]++
	}
}

// patience is far above what anything takes on an idle machine.
const patience = 5 * time.Minute

// wait returns when what holds, and fails the test when it never does. It holds w's lock while it asks.
func (w *world) wait(what string, holds func() bool) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	for {
		w.mu.Lock()
		done, changed := holds(), w.changed
		w.mu.Unlock()
		if done {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			w.mu.Lock()
			defer w.mu.Unlock()
			w.t.Fatalf("waiting until %s: %v; seen %v", what, ctx.Err(), w.reasons)
		}
	}
}

func (w *world) waitRun(name, reason string) *life.PipelineRun {
	w.t.Helper()
	var run *life.PipelineRun
	w.wait("PipelineRun "+name+" is "+reason, func() bool {
		run = w.runs[name]
		return run != nil && run.Status.Conditions.Succeeded().Reason == reason
	})
	return run
}

func (w *world) waitTask(name, reason string) *life.TaskRun {
	w.t.Helper()
	var task *life.TaskRun
	w.wait("TaskRun "+name+" is "+reason, func() bool {
		task = w.tasks[name]
		return task != nil && task.Status.Conditions.Succeeded().Reason == reason
	})
	return task
}

// ask creates a PipelineRun as somebody would.
func (w *world) ask(sample life.Sample) {
	w.t.Helper()
	sample.Namespace = w.namespace
	object, err := life.Encode(sample.PipelineRun())
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := w.client.Resource(pipelineRuns()).Namespace(w.namespace).Create(w.t.Context(), object, metav1.CreateOptions{}); err != nil {
		w.t.Fatal(err)
	}
}

// patch changes a PipelineRun as somebody would.
func (w *world) patch(name, text string) {
	w.t.Helper()
	_, err := w.client.Resource(pipelineRuns()).Namespace(w.namespace).
		Patch(w.t.Context(), name, types.MergePatchType, []byte(text), metav1.PatchOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
}
