package life

import "time"

// Person is what the somebody of a run's written fate does to spec.status now: the word to write, or that the word there
// is to be taken away. Act says whether anything is to be done, next when to look again.
func (r Rules) Person(run *PipelineRun, children []*TaskRun, now time.Time) (word string, act bool, next time.Time) {
	fate, err := ParseFate(run.Annotations[FateAnnotation])
	if err != nil || run.Status.Conditions.Done() {
		return "", false, time.Time{}
	}
	if fate.Outcome == Unpend {
		if run.Spec.Status != SpecPending || run.Status.Conditions.Succeeded().Reason != ReasonPipelineRunPending {
			return "", false, time.Time{}
		}
		due := run.CreationTimestamp.Add(r.paced(pendingTime))
		return "", !due.After(now), due
	}
	request := fate.request()
	if request == "" || run.Spec.Status != "" {
		return "", false, time.Time{}
	}
	for _, child := range children {
		if child.Labels[LabelPipelineTask] != fate.Task || child.Status.Conditions.Succeeded().Reason != ReasonRunning {
			continue
		}
		due := child.Status.Conditions.Succeeded().LastTransitionTime.Add(r.paced(reactionTime))
		return request, !due.After(now), due
	}
	return "", false, time.Time{}
}
