package lifetest

import (
	"errors"
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/simulator/life"
)

// times holds the order of creation, start and completion, and that completion stands exactly where there is an end.
func times(conditions life.Conditions, created metav1.Time, start, completion *metav1.Time) error {
	var faults []error
	if conditions.Done() != (completion != nil) {
		faults = append(faults, fmt.Errorf("ended is %t but completionTime is %v", conditions.Done(), completion))
	}
	if conditions.Done() && start == nil {
		faults = append(faults, errors.New("ended without a startTime"))
	}
	if start != nil && start.Unix() < created.Unix() {
		faults = append(faults, fmt.Errorf("started at %v before its creation at %v", start, created))
	}
	if start != nil && completion != nil && completion.Before(start) {
		faults = append(faults, fmt.Errorf("completed at %v before its start at %v", completion, start))
	}
	return errors.Join(faults...)
}

// children holds that what was created or skipped stays so, and never is both.
func children(before, after life.PipelineRunStatus) error {
	var faults []error
	for _, ref := range before.ChildReferences {
		if !slices.ContainsFunc(after.ChildReferences, func(r life.ChildReference) bool { return r.Name == ref.Name }) {
			faults = append(faults, fmt.Errorf("child %s is forgotten", ref.Name))
		}
	}
	skipped := map[string]bool{}
	for _, task := range after.SkippedTasks {
		skipped[task.Name] = true
	}
	for _, task := range before.SkippedTasks {
		if !skipped[task.Name] {
			faults = append(faults, fmt.Errorf("task %s is no longer skipped", task.Name))
		}
	}
	for _, ref := range after.ChildReferences {
		if skipped[ref.PipelineTaskName] {
			faults = append(faults, fmt.Errorf("task %s is skipped and created", ref.PipelineTaskName))
		}
	}
	return errors.Join(faults...)
}

// attempts holds that earlier attempts stay, that they all failed, and that there are no more than allowed.
func attempts(before, after life.TaskRunStatus, retries int) error {
	var faults []error
	switch added := len(after.RetriesStatus) - len(before.RetriesStatus); {
	case added < 0:
		faults = append(faults, errors.New("an earlier attempt is forgotten"))
	case added > 0 && before.Conditions.Succeeded().Reason == life.ReasonTaskRunToBeRetried:
		faults = append(faults, errors.New("an attempt was added that had not begun"))
	}
	if len(after.RetriesStatus) > retries {
		faults = append(faults, fmt.Errorf("%d attempts behind, %d retries allowed", len(after.RetriesStatus), retries))
	}
	for i, attempt := range after.RetriesStatus {
		if !attempt.Conditions.Failed() || len(attempt.RetriesStatus) > 0 {
			faults = append(faults, fmt.Errorf("attempt %d did not fail, or has attempts of its own", i))
		}
	}
	return errors.Join(faults...)
}

// steps holds the shape of an attempt's steps: one state each, ended ones before the others, each in its time.
func steps(status life.TaskRunStatus) error {
	var faults []error
	open := false
	for i, s := range status.Steps {
		states := 0
		for _, is := range []bool{s.Waiting != nil, s.Running != nil, s.Terminated != nil} {
			if is {
				states++
			}
		}
		if states != 1 || s.Container != "step-"+s.Name {
			faults = append(faults, fmt.Errorf("step %s is in %d states in container %s", s.Name, states, s.Container))
		}
		if s.Terminated == nil {
			open = true
			continue
		}
		if open {
			faults = append(faults, fmt.Errorf("step %s ended before the one in front of it", s.Name))
			continue
		}
		if s.TerminationReason == "" || s.Terminated.FinishedAt.Before(&s.Terminated.StartedAt) {
			faults = append(faults, fmt.Errorf("step %s ended for no reason, or before it began", s.Name))
		}
		if i > 0 && s.Terminated.FinishedAt.Before(&status.Steps[i-1].Terminated.FinishedAt) {
			faults = append(faults, fmt.Errorf("step %s ended earlier than the one in front of it", s.Name))
		}
	}
	if open && status.Conditions.Done() {
		faults = append(faults, errors.New("ended with steps open"))
	}
	return errors.Join(faults...)
}

// stepsOnward holds that within one attempt steps only go from waiting to running to terminated.
func stepsOnward(before, after []life.StepState) error {
	var faults []error
	if len(after) < len(before) {
		return errors.New("steps are forgotten")
	}
	for i, s := range before {
		if stage(after[i]) < stage(s) {
			faults = append(faults, fmt.Errorf("step %s went back", s.Name))
		}
	}
	return errors.Join(faults...)
}

func stage(s life.StepState) int {
	switch {
	case s.Terminated != nil:
		return 2
	case s.Running != nil:
		return 1
	default:
		return 0
	}
}
