package simulator

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hangar.io/glidepath/internal/simulator/life"
)

// moveTaskRun takes a TaskRun one step further. One whose PipelineRun is gone goes too: a cluster of an API server alone
// collects no garbage. One that never had any is retired as a PipelineRun is.
func (s *Simulator) moveTaskRun(ctx context.Context, object *unstructured.Unstructured) (next time.Time, err error) {
	ref := owner(object)
	if ref != nil {
		orphan, err := s.orphan(ctx, object, ref)
		if err != nil {
			return time.Time{}, err
		}
		if orphan {
			return time.Time{}, s.delete(ctx, object)
		}
	}
	run := &life.TaskRun{}
	if err := life.Decode(object, run); err != nil {
		return time.Time{}, err
	}
	if err := s.syncPods(ctx, run); err != nil {
		return time.Time{}, err
	}
	now := s.cfg.Clock.Now()
	if run.Status.Conditions.Done() {
		if ref != nil {
			return time.Time{}, nil // goes with its run
		}
		return s.retire(ctx, object, run.Status.CompletionTime, now)
	}
	changed, next := s.rules.MoveTaskRun(run, now)
	if changed {
		// Pods first: who reads of one in the status finds it.
		if err := s.syncPods(ctx, run); err != nil {
			return time.Time{}, err
		}
		changed, err := s.writeStatus(ctx, object, run.Status)
		if err != nil || changed {
			return time.Time{}, err // the watch will tell
		}
	}
	return next, nil
}

func (s *Simulator) syncPods(ctx context.Context, run *life.TaskRun) error {
	if s.cfg.Pods == nil {
		return nil
	}
	return s.cfg.Pods.Sync(ctx, run)
}

// orphan reports whether the TaskRun's PipelineRun is gone. The cache may be behind, so that only the API server's word
// counts for that.
func (s *Simulator) orphan(ctx context.Context, task *unstructured.Unstructured, ref *metav1.OwnerReference) (bool, error) {
	cached := s.cache.get(key{kind: pipelineRun, namespace: task.GetNamespace(), name: ref.Name})
	if cached != nil && cached.GetUID() == ref.UID {
		return false, nil
	}
	run, err := s.client.Resource(pipelineRuns()).Namespace(task.GetNamespace()).Get(ctx, ref.Name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("get PipelineRun %s: %w", ref.Name, err)
	}
	return run.GetUID() != ref.UID, nil
}

// retire deletes what has been finished for long enough. The TaskRuns of a PipelineRun follow as orphans.
func (s *Simulator) retire(ctx context.Context, object *unstructured.Unstructured, finished *metav1.Time, now time.Time) (next time.Time, err error) {
	if finished == nil {
		return time.Time{}, nil // somebody else's way of writing a status
	}
	if due := finished.Add(s.cfg.Retention); due.After(now) {
		return due, nil
	}
	return time.Time{}, s.delete(ctx, object)
}
