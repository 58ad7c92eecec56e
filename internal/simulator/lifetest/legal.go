package lifetest

import (
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"hangar.io/glidepath/internal/simulator/life"
)

// unseen is the state of an object that no controller has seen.
const unseen = ""

// pipelineRunStates says which reason may follow which. The same reason may always follow itself while it is not final.
func pipelineRunStates() map[string][]string {
	ends := []string{
		life.ReasonSucceeded, life.ReasonCompleted, life.ReasonFailed, life.ReasonCancelled, life.ReasonPipelineRunTimeout,
	}
	faults := []string{life.ReasonCouldntGetPipeline, life.ReasonCouldntGetTask, life.ReasonPipelineInvalidGraph}
	outside := []string{life.ReasonCancelled, life.ReasonPipelineRunTimeout} // however far the run has come
	going := []string{
		life.ReasonRunning, life.ReasonPipelineRunStopping, life.ReasonCancelledRunningFinally,
		life.ReasonStoppedRunningFinally, life.ReasonTimedOutRunningFinally,
	}
	return map[string][]string{
		unseen:                          {life.ReasonStarted, life.ReasonPipelineRunPending},
		life.ReasonPipelineRunPending:   {life.ReasonStarted},
		life.ReasonStarted:              slices.Concat(going, []string{life.ReasonResolvingPipelineRef}, outside, faults),
		life.ReasonResolvingPipelineRef: slices.Concat(going, outside, faults),
		life.ReasonRunning:              slices.Concat(going, ends),
		life.ReasonPipelineRunStopping: {
			life.ReasonCancelledRunningFinally, life.ReasonStoppedRunningFinally,
			life.ReasonFailed, life.ReasonCancelled, life.ReasonPipelineRunTimeout,
		},
		life.ReasonCancelledRunningFinally: {
			life.ReasonTimedOutRunningFinally, life.ReasonFailed, life.ReasonCancelled, life.ReasonPipelineRunTimeout,
		},
		life.ReasonStoppedRunningFinally: {
			life.ReasonCancelledRunningFinally, life.ReasonTimedOutRunningFinally,
			life.ReasonFailed, life.ReasonCancelled, life.ReasonPipelineRunTimeout,
		},
		life.ReasonTimedOutRunningFinally: {life.ReasonPipelineRunTimeout, life.ReasonCancelled},
	}
}

// taskRunStates is the same for TaskRuns.
func taskRunStates() map[string][]string {
	stopped := []string{life.ReasonTaskRunCancelled, life.ReasonTaskRunTimeout, life.ReasonTaskRunToBeRetried}
	return map[string][]string{
		unseen:                        {life.ReasonStarted, life.ReasonTaskRunCancelled, life.SpecTaskRunPending},
		life.SpecTaskRunPending:       {life.ReasonStarted, life.ReasonTaskRunCancelled},
		life.ReasonStarted:            slices.Concat([]string{life.ReasonTaskRunPending, life.ReasonTaskRunResolutionFailed}, stopped),
		life.ReasonTaskRunPending:     slices.Concat([]string{life.ReasonRunning}, stopped),
		life.ReasonRunning:            slices.Concat([]string{life.ReasonSucceeded, life.ReasonTaskRunStepFailed, life.ReasonTaskRunFailureIgnored}, stopped),
		life.ReasonTaskRunToBeRetried: {life.ReasonStarted, life.ReasonTaskRunCancelled},
	}
}

// PipelineRun returns what is wrong with a PipelineRun that was before and, one write later, is after. For the first that
// is known of it, before is the zero PipelineRun.
func PipelineRun(before, after *life.PipelineRun) error {
	b, a := before.Status, after.Status
	return errors.Join(
		step(pipelineRunStates(), b.Conditions.Succeeded(), a.Conditions.Succeeded()),
		frozen(b.Conditions, b, a),
		times(a.Conditions, after.CreationTimestamp, a.StartTime, a.CompletionTime),
		children(b, a),
	)
}

// TaskRun is PipelineRun for TaskRuns.
func TaskRun(before, after *life.TaskRun) error {
	b, a := before.Status, after.Status
	faults := []error{
		step(taskRunStates(), b.Conditions.Succeeded(), a.Conditions.Succeeded()),
		frozen(b.Conditions, b, a),
		times(a.Conditions, after.CreationTimestamp, a.StartTime, a.CompletionTime),
		attempts(b, a, after.Spec.Retries),
		steps(a),
	}
	if b.PodName == a.PodName {
		faults = append(faults, stepsOnward(b.Steps, a.Steps))
	}
	return errors.Join(faults...)
}

func step(states map[string][]string, before, after life.Condition) error {
	if before.Reason == after.Reason && before.Status == after.Status {
		return nil
	}
	if !slices.Contains(states[before.Reason], after.Reason) {
		return fmt.Errorf("reason %q follows %q", after.Reason, before.Reason)
	}
	want := corev1.ConditionFalse
	switch after.Reason {
	case life.ReasonSucceeded, life.ReasonCompleted:
		want = corev1.ConditionTrue
	default:
		if _, going := states[after.Reason]; going {
			want = corev1.ConditionUnknown
		}
	}
	if after.Status != want {
		return fmt.Errorf("reason %q has status %s, want %s", after.Reason, after.Status, want)
	}
	return nil
}

// frozen holds that nothing changes after the end.
func frozen(conditions life.Conditions, before, after any) error {
	if conditions.Done() && !equality.Semantic.DeepEqual(before, after) {
		return errors.New("the status changed after the end")
	}
	return nil
}

// PipelineRunAlone returns what is wrong with a PipelineRun of which only this is known.
func PipelineRunAlone(run *life.PipelineRun) error {
	return errors.Join(
		times(run.Status.Conditions, run.CreationTimestamp, run.Status.StartTime, run.Status.CompletionTime),
		children(life.PipelineRunStatus{}, run.Status),
	)
}

// TaskRunAlone is PipelineRunAlone for TaskRuns.
func TaskRunAlone(run *life.TaskRun) error {
	return errors.Join(
		times(run.Status.Conditions, run.CreationTimestamp, run.Status.StartTime, run.Status.CompletionTime),
		attempts(life.TaskRunStatus{}, run.Status, run.Spec.Retries),
		steps(run.Status),
	)
}
