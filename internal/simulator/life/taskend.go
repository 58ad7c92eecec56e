package life

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// endStep ends the current step when its time has come. A step that fails ends the TaskRun, for the steps after it are
// skipped at that moment.
func (r Rules) endStep(run *TaskRun, current int, now time.Time) (changed bool, next time.Time) {
	status := &run.Status
	step := &status.Steps[current]
	begun := step.Running.StartedAt
	if current > 0 {
		begun = status.Steps[current-1].Terminated.FinishedAt
	}
	outcome := r.stepOutcome(run, current)
	if outcome == Hang {
		return false, time.Time{}
	}
	if due := begun.Add(r.stepLength(run, step.Name)); due.After(now) {
		return false, due
	}
	end := corev1.ContainerStateTerminated{
		Reason: terminationCompleted, StartedAt: begun, FinishedAt: metav1.NewTime(now),
		ContainerID: ContainerID(run.Namespace, status.PodName, step.Name),
	}
	step.TerminationReason = terminationCompleted
	switch {
	case outcome == Succeed:
	case status.TaskSpec.Steps[current].OnError == OnErrorContinue:
		end.ExitCode, step.TerminationReason = 1, terminationContinued
	default:
		end.ExitCode, end.Reason, step.TerminationReason = 1, terminationError, terminationError
	}
	step.ContainerState = corev1.ContainerState{Terminated: &end}
	if end.Reason == terminationError {
		skipSteps(run, current+1, now)
	}
	return true, now
}

// stepOutcome is Succeed, Fail or Hang.
func (r Rules) stepOutcome(run *TaskRun, index int) Outcome {
	fate := r.taskFate(run)
	steps := run.Status.TaskSpec.Steps
	struck := index == len(steps)-1
	if fate.Step != "" {
		struck = stepName(steps[index], index) == fate.Step
	}
	switch {
	case !struck:
		return Succeed
	case fate.Outcome == Flaky && len(run.Status.RetriesStatus) == 0:
		return Fail
	case fate.Outcome == Fail, fate.Outcome == Hang:
		return fate.Outcome
	default:
		return Succeed
	}
}

// skipSteps ends the steps that never got their turn.
func skipSteps(run *TaskRun, from int, now time.Time) {
	for i := from; i < len(run.Status.Steps); i++ {
		step := &run.Status.Steps[i]
		step.ContainerState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: terminationError, StartedAt: metav1.NewTime(now), FinishedAt: metav1.NewTime(now),
			ContainerID: ContainerID(run.Namespace, run.Status.PodName, step.Name),
		}}
		step.TerminationReason = terminationSkipped
	}
}

// finish writes the outcome of an attempt whose steps have all ended.
func (r Rules) finish(run *TaskRun, now time.Time) {
	status := &run.Status
	for _, step := range status.Steps {
		if step.TerminationReason != terminationError {
			continue
		}
		reason := ReasonTaskRunStepFailed
		if run.Annotations[annotationOnError] == OnErrorContinue {
			reason = ReasonTaskRunFailureIgnored
		}
		message := fmt.Sprintf("%q exited with code %d: %s", step.Container, step.Terminated.ExitCode, step.Terminated.Reason)
		endTask(status, corev1.ConditionFalse, reason, message, now)
		retry(run, now)
		return
	}
	r.handOn(run)
	endTask(status, corev1.ConditionTrue, ReasonSucceeded, messageSucceeded, now)
}

func endTask(status *TaskRunStatus, ok corev1.ConditionStatus, reason, message string, now time.Time) {
	status.Conditions.set(ok, reason, message, now)
	status.CompletionTime = timePointer(now)
}

// handOn gives the declared results values, and puts them into the last step's termination message, where Tekton finds
// them.
func (r Rules) handOn(run *TaskRun) {
	status := &run.Status
	type entry struct {
		Key   string `json:"key"`
		Value string `json:"value"`
		Type  int    `json:"type"`
	}
	var entries []entry
	for _, declared := range status.TaskSpec.Results {
		value := resultValue(run, declared.Name)
		status.Results = append(status.Results, Result{Name: declared.Name, Type: "string", Value: value})
		entries = append(entries, entry{Key: declared.Name, Value: value, Type: 1})
	}
	if len(entries) == 0 {
		return
	}
	if message, err := json.Marshal(entries); err == nil {
		status.Steps[len(status.Steps)-1].Terminated.Message = string(message)
	}
}

// resultValue looks like what the name promises.
func resultValue(run *TaskRun, name string) string {
	id := digest(run.Namespace, run.Name, name)
	switch name {
	case "commit":
		return id[:40]
	case "IMAGE_URL":
		return "registry.example/" + run.Namespace + ":" + id[:7]
	case "IMAGE_DIGEST":
		return "sha256:" + id
	case "chain-id":
		return id[:8] + "-" + id[8:12] + "-4" + id[13:16] + "-8" + id[17:20] + "-" + id[20:32]
	default:
		return id[:12]
	}
}

// stop ends an attempt from outside: the pod is removed, and with it the steps that had not ended.
func stop(run *TaskRun, reason, message string, now time.Time) {
	status := &run.Status
	if last := status.Conditions.Succeeded(); last.Reason == ReasonTaskRunToBeRetried && last.Message != "" {
		message += fmt.Sprintf("\nPrevious status: [%s] %s", last.Reason, last.Message)
	}
	endTask(status, corev1.ConditionFalse, reason, message, now)
	for i := range status.Steps {
		step := &status.Steps[i]
		if step.Terminated != nil {
			continue
		}
		began := run.CreationTimestamp
		if step.Running != nil {
			began = step.Running.StartedAt
		}
		step.ContainerState = corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{
			ExitCode: 1, Reason: reason, StartedAt: began, FinishedAt: *status.CompletionTime,
			Message: fmt.Sprintf("Step %s terminated as pod %s is terminated", step.Name, status.PodName),
		}}
		step.TerminationReason = reason
	}
}

// retry puts a failed attempt behind when the TaskRun has another one. The steps stay until the next pod has some.
func retry(run *TaskRun, now time.Time) {
	status := &run.Status
	if !status.Conditions.Failed() || len(status.RetriesStatus) >= run.Spec.Retries {
		return
	}
	attempt := *status
	attempt.RetriesStatus = nil
	attempt.Conditions = append(Conditions(nil), status.Conditions...)
	attempt.Steps = append([]StepState(nil), status.Steps...)
	status.RetriesStatus = append(status.RetriesStatus, attempt)
	status.StartTime, status.CompletionTime, status.PodName, status.Results = nil, nil, "", nil
	status.Conditions.set(corev1.ConditionUnknown, ReasonTaskRunToBeRetried, attempt.Conditions.Succeeded().Message, now)
}

// digest is 64 hex digits that stand for the words.
func digest(words ...string) string {
	h := sha256.New()
	for _, w := range words {
		_, _ = h.Write(append([]byte(w), 0)) // a hash never fails
	}
	return hex.EncodeToString(h.Sum(nil))
}
