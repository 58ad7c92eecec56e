package load

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"hangar.io/glidepath/internal/simulator/life"
)

const (
	fieldManager = "glidepath-load"
	// requestTime bounds one request. A request that has begun is not cut short by the end of the load, so that what was
	// counted is what there is.
	requestTime = 30 * time.Second
	// padding is the annotation that objects are filled with.
	padding = "simulator.hangar.io/padding"
)

func pipelineRuns() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}
}

func taskRuns() schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "taskruns"}
}

func resourceOf(object any) schema.GroupVersionResource {
	if _, ok := object.(*life.TaskRun); ok {
		return taskRuns()
	}
	return pipelineRuns()
}

func (r *run) of(resource schema.GroupVersionResource) dynamic.ResourceInterface {
	return r.load.client.Resource(resource).Namespace(r.namespace)
}

// begun gives a request its own end.
func begun(ctx context.Context, pace turn) (context.Context, context.CancelFunc, error) {
	if err := pace(ctx); err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	return ctx, cancel, nil
}

// create makes the object. One that is there already was made by an earlier try whose answer was lost.
func (r *run) create(ctx context.Context, pace turn, object any, meta *metav1.ObjectMeta) error {
	ctx, cancel, err := begun(ctx, pace)
	if err != nil {
		return err
	}
	defer cancel()
	encoded, err := life.Encode(object)
	if err != nil {
		return err
	}
	delete(encoded.Object, "status")
	unstructured.RemoveNestedField(encoded.Object, "metadata", "uid")
	encoded.SetLabels(with(encoded.GetLabels(), LabelLoad, r.load.label()))
	encoded.SetAnnotations(with(encoded.GetAnnotations(), padding, r.fill[meta.Name]))
	made, err := r.of(resourceOf(object)).Create(ctx, encoded, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		made, err = r.of(resourceOf(object)).Get(ctx, meta.Name, metav1.GetOptions{})
		if err == nil && (made.GetLabels()[LabelLoad] != r.load.label() || !sameOwner(made, meta)) {
			return fmt.Errorf("%s %s/%s is in the way: %w", encoded.GetKind(), r.namespace, meta.Name, errForeign)
		}
	}
	if err != nil {
		return fmt.Errorf("make %s: %w", meta.Name, err)
	}
	meta.UID, meta.ResourceVersion, meta.CreationTimestamp = made.GetUID(), made.GetResourceVersion(), made.GetCreationTimestamp()
	r.written[meta.Name] = state{}
	if run, ok := object.(*life.PipelineRun); ok {
		r.written[meta.Name] = state{word: run.Spec.Status}
	}
	r.load.count.created.Add(1)
	return nil
}

func sameOwner(made metav1.Object, meta *metav1.ObjectMeta) bool {
	want := metav1.GetControllerOfNoCopy(meta)
	have := metav1.GetControllerOfNoCopy(made)
	return want == nil && have == nil || want != nil && have != nil && want.UID == have.UID
}

func with(m map[string]string, key, value string) map[string]string {
	if m == nil {
		m = map[string]string{}
	}
	if value != "" {
		m[key] = value
	}
	return m
}

// update replaces the status of the object as it was read.
func (r *run) update(ctx context.Context, pace turn, object any, meta *metav1.ObjectMeta) error {
	ctx, cancel, err := begun(ctx, pace)
	if err != nil {
		return err
	}
	defer cancel()
	encoded, err := life.Encode(object)
	if err != nil {
		return err
	}
	answer, err := r.of(resourceOf(object)).UpdateStatus(ctx, encoded, metav1.UpdateOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", meta.Name, err)
	}
	r.changed(meta, answer)
	return nil
}

// request writes spec.status of the object as it was read: somebody, or the run, asks for an end.
func (r *run) request(ctx context.Context, pace turn, object any, meta *metav1.ObjectMeta, word, why string) error {
	ctx, cancel, err := begun(ctx, pace)
	if err != nil {
		return err
	}
	defer cancel()
	spec := map[string]any{"status": word}
	if why != "" {
		spec["statusMessage"] = why
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"resourceVersion": meta.ResourceVersion}, "spec": spec})
	if err != nil {
		return fmt.Errorf("encode a patch: %w", err)
	}
	answer, err := r.of(resourceOf(object)).Patch(ctx, meta.Name, types.MergePatchType, patch, metav1.PatchOptions{FieldManager: fieldManager})
	if err != nil {
		return fmt.Errorf("patch %s: %w", meta.Name, err)
	}
	r.changed(meta, answer)
	return nil
}

// changed counts a write. One that changed nothing in the cluster is none, since no watcher hears of it.
func (r *run) changed(meta *metav1.ObjectMeta, answer metav1.Object) {
	if meta.ResourceVersion == answer.GetResourceVersion() {
		return
	}
	meta.ResourceVersion = answer.GetResourceVersion()
	r.load.count.updated.Add(1)
}

// remove deletes the object that was made, not one that has its name now.
func (r *run) remove(ctx context.Context, pace turn, resource schema.GroupVersionResource, meta *metav1.ObjectMeta) error {
	ctx, cancel, err := begun(ctx, pace)
	if err != nil {
		return err
	}
	defer cancel()
	err = r.of(resource).Delete(ctx, meta.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &meta.UID}})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err): // somebody else was faster
		return nil
	case err != nil:
		return fmt.Errorf("remove %s: %w", meta.Name, err)
	}
	r.load.count.removed.Add(1)
	return nil
}

// read fills into from the cluster. What objects are filled with is left out: a run's TaskRuns would inherit it.
func (r *run) read(ctx context.Context, resource schema.GroupVersionResource, name string, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	object, err := r.of(resource).Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return err
	}
	unstructured.RemoveNestedField(object.Object, "metadata", "annotations", padding)
	unstructured.RemoveNestedField(object.Object, "metadata", "managedFields")
	return life.Decode(object, into)
}
