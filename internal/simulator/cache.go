package simulator

import (
	"context"
	"fmt"
	"log/slog"

	"golang.org/x/sync/errgroup"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	toolscache "k8s.io/client-go/tools/cache"

	"hangar.io/glidepath/internal/simulator/life"
)

// byRun indexes TaskRuns by the PipelineRun they are labelled with.
const byRun = "pipelineRun"

// cache is the API server's runs as this process knows them, a little behind. It puts everything that changes into the
// queue. Objects in it are shared and must not be changed.
type cache struct {
	informers map[key]toolscache.SharedIndexInformer // by kind and namespace
}

func newCache(client dynamic.Interface, namespaces []string, queue queue, logger *slog.Logger) *cache {
	c := &cache{informers: map[key]toolscache.SharedIndexInformer{}}
	for _, namespace := range namespaces {
		for kind, resource := range map[kind]schema.GroupVersionResource{pipelineRun: pipelineRuns(), taskRun: taskRuns()} {
			informer := dynamicinformer.NewFilteredDynamicInformer(client, resource, namespace, 0,
				toolscache.Indexers{byRun: indexByRun}, nil).Informer()
			c.informers[key{kind: kind, namespace: namespace}] = informer
			c.watch(informer, kind, queue, logger)
		}
	}
	return c
}

// watch wires an informer that has not been started; the errors that can come of it are of one that has.
func (c *cache) watch(informer toolscache.SharedIndexInformer, kind kind, queue queue, logger *slog.Logger) {
	report := func(err error) {
		if err != nil {
			logger.Warn("watching runs failed, trying again", "kind", kind, "error", err)
		}
	}
	enqueue := func(object any) {
		if gone, ok := object.(toolscache.DeletedFinalStateUnknown); ok {
			object = gone.Obj
		}
		if run, ok := object.(*unstructured.Unstructured); ok {
			c.enqueue(queue, kind, run)
		}
	}
	_, err := informer.AddEventHandler(toolscache.ResourceEventHandlerFuncs{
		AddFunc:    enqueue,
		UpdateFunc: func(_, object any) { enqueue(object) },
		DeleteFunc: enqueue,
	})
	report(err)
	report(informer.SetWatchErrorHandlerWithContext(func(_ context.Context, _ *toolscache.Reflector, err error) { report(err) }))
}

// enqueue lets the object be looked at, and with it whatever depends on it: a TaskRun's PipelineRun, and the TaskRuns of
// a PipelineRun, which may be gone.
func (c *cache) enqueue(queue queue, kind kind, object *unstructured.Unstructured) {
	queue.Add(key{kind: kind, namespace: object.GetNamespace(), name: object.GetName()})
	if kind == taskRun {
		if run := object.GetLabels()[life.LabelPipelineRun]; run != "" {
			queue.Add(key{kind: pipelineRun, namespace: object.GetNamespace(), name: run})
		}
		return
	}
	for _, task := range c.children(object.GetNamespace(), object.GetName()) {
		queue.Add(key{kind: taskRun, namespace: task.GetNamespace(), name: task.GetName()})
	}
}

func indexByRun(object any) ([]string, error) {
	run, ok := object.(*unstructured.Unstructured)
	if !ok {
		return nil, fmt.Errorf("index: got a %T", object)
	}
	return []string{run.GetLabels()[life.LabelPipelineRun]}, nil
}

// start runs every informer in the group until ctx ends.
func (c *cache) start(ctx context.Context, group *errgroup.Group) {
	for _, informer := range c.informers {
		group.Go(func() error { informer.RunWithContext(ctx); return nil })
	}
}

// wait returns when every informer has listed once, false if ctx ended before.
func (c *cache) wait(ctx context.Context) bool {
	for _, informer := range c.informers {
		if !toolscache.WaitForCacheSync(ctx.Done(), informer.HasSynced) {
			return false
		}
	}
	return true
}

// get returns the object, or nil.
func (c *cache) get(k key) *unstructured.Unstructured {
	informer, ok := c.informers[key{kind: k.kind, namespace: k.namespace}]
	if !ok {
		return nil
	}
	object, found, err := informer.GetStore().GetByKey(k.namespace + "/" + k.name)
	if err != nil || !found {
		return nil
	}
	run, _ := object.(*unstructured.Unstructured)
	return run
}

// children returns the TaskRuns labelled with the PipelineRun's name, whoever owns them.
func (c *cache) children(namespace, name string) []*unstructured.Unstructured {
	informer, ok := c.informers[key{kind: taskRun, namespace: namespace}]
	if !ok || name == "" {
		return nil
	}
	objects, err := informer.GetIndexer().ByIndex(byRun, name)
	if err != nil {
		return nil
	}
	return runsOf(objects)
}

// all returns every object of the kind in every namespace.
func (c *cache) all(kind kind) []*unstructured.Unstructured {
	var runs []*unstructured.Unstructured
	for k, informer := range c.informers {
		if k.kind == kind {
			runs = append(runs, runsOf(informer.GetStore().List())...)
		}
	}
	return runs
}

func runsOf(objects []any) []*unstructured.Unstructured {
	runs := make([]*unstructured.Unstructured, 0, len(objects))
	for _, object := range objects {
		if run, ok := object.(*unstructured.Unstructured); ok {
			runs = append(runs, run)
		}
	}
	return runs
}

// owner returns the PipelineRun that controls the TaskRun.
func owner(task *unstructured.Unstructured) *metav1.OwnerReference {
	if ref := metav1.GetControllerOf(task); ref != nil && ref.Kind == life.KindPipelineRun {
		return ref
	}
	return nil
}
