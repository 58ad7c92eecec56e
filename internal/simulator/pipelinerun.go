package simulator

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hangar.io/glidepath/internal/simulator/life"
)

// movePipelineRun takes a run one step further, or away when it has been finished for long enough.
func (s *Simulator) movePipelineRun(ctx context.Context, object *unstructured.Unstructured) (next time.Time, err error) {
	run := &life.PipelineRun{}
	if err := life.Decode(object, run); err != nil {
		return time.Time{}, err
	}
	now := s.cfg.Clock.Now()
	if run.Status.Conditions.Done() {
		return s.retire(ctx, object, run.Status.CompletionTime, now)
	}
	children, tasks, err := s.tasksOf(object)
	if err != nil {
		return time.Time{}, err
	}
	word, act, due := s.rules.Person(run, tasks, now)
	if act {
		return time.Time{}, s.request(ctx, object, word)
	}
	moves := s.rules.MovePipelineRun(run, tasks, now)
	if moves.Label != "" {
		// What else the move asks for follows when the watch tells of the label.
		return time.Time{}, s.patch(ctx, object, map[string]any{
			"metadata": map[string]any{"labels": map[string]any{life.LabelPipeline: moves.Label}},
		})
	}
	if err := s.carryOut(ctx, object, children, moves); err != nil {
		return time.Time{}, err
	}
	if moves.Changed {
		changed, err := s.writeStatus(ctx, object, run.Status)
		if err != nil || changed {
			return time.Time{}, err // the watch will tell
		}
	}
	return soonest(due, moves.Next), nil
}

// tasksOf returns the TaskRuns that the run owns, as they are and decoded.
func (s *Simulator) tasksOf(run *unstructured.Unstructured) ([]*unstructured.Unstructured, []*life.TaskRun, error) {
	var objects []*unstructured.Unstructured
	var tasks []*life.TaskRun
	for _, object := range s.cache.children(run.GetNamespace(), run.GetName()) {
		if !metav1.IsControlledBy(object, run) || object.GetDeletionTimestamp() != nil {
			continue
		}
		task := &life.TaskRun{}
		if err := life.Decode(object, task); err != nil {
			return nil, nil, err
		}
		objects, tasks = append(objects, object), append(tasks, task)
	}
	return objects, tasks, nil
}

// request plays the somebody of a run's fate, who writes spec.status or takes it away.
func (s *Simulator) request(ctx context.Context, object *unstructured.Unstructured, word string) error {
	var status any // null takes the field away
	if word != "" {
		status = word
	}
	return s.patch(ctx, object, map[string]any{"spec": map[string]any{"status": status}})
}

// carryOut creates and cancels TaskRuns.
func (s *Simulator) carryOut(ctx context.Context, run *unstructured.Unstructured, children []*unstructured.Unstructured, moves life.Moves) error {
	for _, task := range moves.Create {
		if err := s.createTask(ctx, run, task); err != nil {
			return err
		}
	}
	for _, child := range children {
		if !slices.Contains(moves.Cancel, child.GetName()) {
			continue
		}
		err := s.patch(ctx, child, map[string]any{
			"spec": map[string]any{"status": life.SpecTaskRunCancelled, "statusMessage": moves.CancelMessage},
		})
		if err != nil && !apierrors.IsNotFound(err) {
			return fmt.Errorf("cancel TaskRun %s: %w", child.GetName(), err)
		}
	}
	return nil
}

// createTask creates a TaskRun, unless an earlier attempt at the same move has. One of a former run with the same name is
// an orphan, and soon out of the way.
func (s *Simulator) createTask(ctx context.Context, run *unstructured.Unstructured, task *life.TaskRun) error {
	object, err := life.Encode(task)
	if err != nil {
		return err
	}
	_, err = s.resource(object).Create(ctx, object, metav1.CreateOptions{FieldManager: fieldManager})
	if !apierrors.IsAlreadyExists(err) {
		if err != nil {
			return fmt.Errorf("create TaskRun %s: %w", task.Name, err)
		}
		return nil
	}
	held, err := s.resource(object).Get(ctx, task.Name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("get TaskRun %s: %w", task.Name, err)
	}
	if metav1.IsControlledBy(held, run) {
		return nil
	}
	if owner(held) == nil {
		return fmt.Errorf("TaskRun %s is not the run's and in the way", task.Name)
	}
	return fmt.Errorf("TaskRun %s of a former run is in the way: %w", task.Name, errStale)
}

// soonest is the earlier moment; the zero time is none.
func soonest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
