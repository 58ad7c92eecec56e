package life

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MoveTaskRun takes the TaskRun one step further and changes run.Status in place. It reports whether the status differs
// from what it was, and when to look again though nothing has changed; zero is never.
//
// As in a real pod all containers of an attempt start together, so every step that has not ended says running; they end
// one after another, and only then does a step say when it began.
func (r Rules) MoveTaskRun(run *TaskRun, now time.Time) (changed bool, next time.Time) {
	status := &run.Status
	timeout := r.taskTimeout(run)
	switch {
	case status.Conditions.Done():
		return false, time.Time{}
	case run.Spec.Status == SpecTaskRunCancelled:
		message := fmt.Sprintf("TaskRun %q was cancelled. %s", run.Name, run.Spec.StatusMessage)
		if status.StartTime == nil {
			status.StartTime = timePointer(now)
		}
		stop(run, ReasonTaskRunCancelled, message, now)
		return true, time.Time{}
	case status.StartTime == nil && run.Spec.Status == SpecTaskRunPending:
		return hold(run, now), time.Time{}
	case status.StartTime == nil:
		return r.startAttempt(run, now)
	case timeout.passed(status.StartTime.Time, now):
		message := fmt.Sprintf("TaskRun %q failed to finish within %q", run.Name, timeout)
		stop(run, ReasonTaskRunTimeout, message, now)
		retry(run, now)
		return true, now
	}
	deadline := timeout.next(status.StartTime.Time, now)
	changed, next = r.moveAttempt(run, now)
	if changed {
		return true, now // the attempt may be over, and its deadline with it
	}
	return false, earlier(next, deadline)
}

func (r Rules) taskTimeout(run *TaskRun) bound {
	if run.Spec.Timeout != nil {
		return bound(run.Spec.Timeout.Duration)
	}
	return bound(r.defaultTimeout())
}

// hold keeps a pending TaskRun from starting.
func hold(run *TaskRun, now time.Time) bool {
	if run.Status.Conditions.Succeeded().Status != "" {
		return false
	}
	run.Status.Conditions.set(corev1.ConditionUnknown, SpecTaskRunPending, fmt.Sprintf("TaskRun %q is pending", run.Name), now)
	return true
}

// startAttempt begins the first attempt at once and a further one after a while, so that what became of the last one
// can be seen.
func (r Rules) startAttempt(run *TaskRun, now time.Time) (changed bool, next time.Time) {
	if last := run.Status.Conditions.Succeeded(); last.Reason == ReasonTaskRunToBeRetried {
		if due := last.LastTransitionTime.Add(r.paced(retryDelay)); due.After(now) {
			return false, due
		}
	}
	run.Status.StartTime = timePointer(now)
	run.Status.Conditions.set(corev1.ConditionUnknown, ReasonStarted, "", now)
	return true, now
}

// moveAttempt goes from the pod's creation through its steps.
func (r Rules) moveAttempt(run *TaskRun, now time.Time) (changed bool, next time.Time) {
	status := &run.Status
	if status.PodName == "" {
		r.createPod(run, now)
		return true, now
	}
	current := currentStep(status.Steps)
	if current < 0 {
		r.finish(run, now)
		return true, now
	}
	if status.Steps[current].Waiting != nil {
		due := status.StartTime.Add(r.paced(startDelay))
		if due.After(now) {
			return false, due
		}
		runSteps(status, now)
		return true, now
	}
	return r.endStep(run, current, now)
}

// createPod makes the attempt's pod, whose containers wait to be initialized.
func (r Rules) createPod(run *TaskRun, now time.Time) {
	status := &run.Status
	spec := r.taskSpec(run)
	if spec == nil || len(spec.Steps) == 0 {
		name := ""
		if run.Spec.TaskRef != nil {
			name = run.Spec.TaskRef.Target()
		}
		endTask(status, corev1.ConditionFalse, ReasonTaskRunResolutionFailed, fmt.Sprintf("tasks.tekton.dev %q not found", name), now)
		return
	}
	status.TaskSpec = spec
	status.PodName = podName(run.Name, len(status.RetriesStatus))
	status.Steps = nil
	for i, step := range spec.Steps {
		name := stepName(step, i)
		status.Steps = append(status.Steps, StepState{
			Name: name, Container: "step-" + name,
			ContainerState: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: waitingPodInitializing}},
		})
	}
	status.Conditions.set(corev1.ConditionUnknown, ReasonTaskRunPending, messageInitializing, now)
}

// taskSpec is what the TaskRun brings along, else what the catalog has.
func (r Rules) taskSpec(run *TaskRun) *TaskSpec {
	if run.Spec.TaskSpec != nil {
		return run.Spec.TaskSpec
	}
	if run.Spec.TaskRef == nil {
		return nil
	}
	if spec, ok := r.Catalog.Tasks[run.Spec.TaskRef.Target()]; ok {
		return &spec
	}
	return nil
}

// currentStep is the first step that has not ended, or -1.
func currentStep(steps []StepState) int {
	for i, s := range steps {
		if s.Terminated == nil {
			return i
		}
	}
	return -1
}

func runSteps(status *TaskRunStatus, now time.Time) {
	for i := range status.Steps {
		step := &status.Steps[i]
		step.ContainerState = corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: metav1.NewTime(now)}}
		step.ImageID = "registry.example/ci/" + step.Name + "@sha256:" + digest(step.Name)
	}
	status.Conditions.set(corev1.ConditionUnknown, ReasonRunning, messageRunning, now)
}
