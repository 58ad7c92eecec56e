package fleet

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"hangar.io/glidepath/internal/simulator/life"
)

// errTaken says that somebody else has begun to move a sample run; it is theirs then.
var errTaken = errors.New("taken over")

// between is how far apart the ends of the sample runs that have ended are.
const between = 15 * time.Second

func applyRuns(ctx context.Context, client dynamic.Interface, now time.Time) error {
	for i, sample := range sampleRuns() {
		end := now
		if sample.until == "" && sample.Status == "" {
			end = now.Add(-time.Duration(i) * between)
		}
		if err := applyRun(ctx, client, sample, end); err != nil && !errors.Is(err, errTaken) {
			return fmt.Errorf("sample run %s/%s: %w", sample.Namespace, sample.Name, err)
		}
	}
	return nil
}

// applyRun creates a run, then its TaskRuns, and writes the run's own status last: a run without status is one whose
// making was cut short, and is made again.
func applyRun(ctx context.Context, client dynamic.Interface, sample sampleRun, end time.Time) error {
	object, err := create(ctx, client, pipelineRuns, sample.PipelineRun())
	if err != nil {
		return err
	}
	if _, moved := object.Object["status"]; moved {
		return nil
	}
	world, err := sample.lived(object, end)
	if err != nil {
		return err
	}
	var tasks []*unstructured.Unstructured
	for _, task := range world.TaskRuns {
		created, err := createTask(ctx, client, world.Run, task)
		if err != nil {
			return err
		}
		tasks = append(tasks, created)
	}
	for i, task := range world.TaskRuns {
		if err := writeStatus(ctx, client, taskRuns, tasks[i], task.Status); err != nil {
			return err
		}
	}
	if object, err = writeMeta(ctx, client, object, world.Run); err != nil {
		return err
	}
	return writeStatus(ctx, client, pipelineRuns, object, world.Run.Status)
}

// createTask creates a TaskRun of the run. One that is left over from an earlier run of the same name goes first: nothing
// in the cluster collects it.
func createTask(ctx context.Context, client dynamic.Interface, run *life.PipelineRun, task *life.TaskRun) (*unstructured.Unstructured, error) {
	object, err := create(ctx, client, taskRuns, task)
	if err != nil || metav1.IsControlledBy(object, run) {
		return object, err
	}
	uid := object.GetUID()
	err = client.Resource(taskRuns).Namespace(task.Namespace).
		Delete(ctx, task.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil && !apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("delete left-over TaskRun %s: %w", task.Name, err)
	}
	return create(ctx, client, taskRuns, task)
}

// create returns the object that has the name, new or not.
func create(ctx context.Context, client dynamic.Interface, of schema.GroupVersionResource, object any) (*unstructured.Unstructured, error) {
	encoded, err := life.Encode(object)
	if err != nil {
		return nil, err
	}
	resource := client.Resource(of).Namespace(encoded.GetNamespace())
	unstructured.RemoveNestedField(encoded.Object, "metadata", "uid")
	created, err := resource.Create(ctx, encoded, metav1.CreateOptions{FieldManager: fieldManager})
	if apierrors.IsAlreadyExists(err) {
		created, err = resource.Get(ctx, encoded.GetName(), metav1.GetOptions{})
	}
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", encoded.GetKind(), encoded.GetName(), err)
	}
	return created, nil
}

// writeMeta writes what the life changed beside the status: the pipeline's label, and a request to cancel.
func writeMeta(ctx context.Context, client dynamic.Interface, object *unstructured.Unstructured, run *life.PipelineRun) (*unstructured.Unstructured, error) {
	object.SetLabels(run.Labels)
	if run.Spec.Status != "" {
		if err := unstructured.SetNestedField(object.Object, run.Spec.Status, "spec", "status"); err != nil {
			return nil, fmt.Errorf("spec.status of %s: %w", run.Name, err)
		}
	}
	updated, err := client.Resource(pipelineRuns).Namespace(run.Namespace).
		Update(ctx, object, metav1.UpdateOptions{FieldManager: fieldManager})
	return updated, taken(err)
}

// writeStatus writes the status of an object as it was read: a conflict means that it moved meanwhile.
func writeStatus(ctx context.Context, client dynamic.Interface, of schema.GroupVersionResource, object *unstructured.Unstructured, status any) error {
	if err := life.SetStatus(object, status); err != nil {
		return err
	}
	_, err := client.Resource(of).Namespace(object.GetNamespace()).
		UpdateStatus(ctx, object, metav1.UpdateOptions{FieldManager: fieldManager})
	return taken(err)
}

func taken(err error) error {
	if apierrors.IsConflict(err) {
		return errTaken
	}
	if err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
