package life

import (
	"fmt"
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Moves is what a controller has to do about a PipelineRun, in this order; then the run's status, which has been changed
// in place, is to be written when Changed says so.
type Moves struct {
	// Label is the value that LabelPipeline has to get, when not empty.
	Label string
	// Create holds the TaskRuns to create. One that is there already was created by an earlier attempt at this move.
	Create []*TaskRun
	// Cancel names the TaskRuns whose spec.status becomes SpecTaskRunCancelled, and CancelMessage the reason to give.
	Cancel        []string
	CancelMessage string
	// Changed reports whether the status differs from what it was.
	Changed bool
	// Next is when to look again though nothing has changed; zero is never.
	Next time.Time
}

// MovePipelineRun takes the run one step further and changes run.Status in place. The children are its TaskRuns as they
// are now; they are read only.
func (r Rules) MovePipelineRun(run *PipelineRun, children []*TaskRun, now time.Time) Moves {
	status := &run.Status
	switch {
	case status.Conditions.Done():
		return Moves{}
	case status.StartTime == nil && run.Spec.Status == SpecPending:
		return r.pend(run, now)
	case status.StartTime == nil:
		status.StartTime = timePointer(now)
		status.Conditions.set(corev1.ConditionUnknown, ReasonStarted, "", now)
		return Moves{Changed: true, Label: missingLabel(run), Next: now}
	case run.Spec.Status == SpecCancelled:
		end(status, Condition{Status: corev1.ConditionFalse, Reason: ReasonCancelled, Message: cancelledMessage(run)}, now)
		return Moves{Changed: true, Cancel: unfinished(children), CancelMessage: messageCancelledByPipelineRun}
	case status.PipelineSpec == nil:
		return r.resolve(run, now)
	default:
		return r.advance(r.gather(run, children, now))
	}
}

func (r Rules) pend(run *PipelineRun, now time.Time) Moves {
	if run.Status.Conditions.Succeeded().Reason == ReasonPipelineRunPending {
		return Moves{}
	}
	message := fmt.Sprintf("PipelineRun %q is pending", run.Name)
	run.Status.Conditions.set(corev1.ConditionUnknown, ReasonPipelineRunPending, message, now)
	return Moves{Changed: true, Label: missingLabel(run)}
}

func missingLabel(run *PipelineRun) string {
	if run.Labels[LabelPipeline] != "" {
		return ""
	}
	return pipelineLabel(run)
}

// resolve finds the pipeline: in the run itself, else in the catalog.
func (r Rules) resolve(run *PipelineRun, now time.Time) Moves {
	status := &run.Status
	spec := run.Spec.PipelineSpec
	if spec == nil {
		ref := run.Spec.PipelineRef
		if ref != nil && ref.Resolver != "" && status.Conditions.Succeeded().Reason != ReasonResolvingPipelineRef {
			message := fmt.Sprintf("PipelineRun %s/%s awaiting remote resource", run.Namespace, run.Name)
			status.Conditions.set(corev1.ConditionUnknown, ReasonResolvingPipelineRef, message, now)
			return Moves{Changed: true, Next: now.Add(r.paced(resolveDelay))}
		}
		if resolved := status.StartTime.Add(r.paced(resolveDelay)); resolved.After(now) {
			return Moves{Next: resolved}
		}
		spec = r.lookUp(ref)
	}
	if fault := r.fault(run, spec); fault != nil {
		end(status, *fault, now)
		return Moves{Changed: true}
	}
	resolved := paramValues(spec.Params, run.Spec.Params).spec(*spec)
	status.PipelineSpec = &resolved
	moves := r.advance(r.gather(run, nil, now))
	moves.Changed = true
	return moves
}

// lookUp finds a pipeline of the catalog. Its timeouts are paced as all that is not written in an object is.
func (r Rules) lookUp(ref *Ref) *PipelineSpec {
	if ref == nil {
		return nil
	}
	spec, ok := r.Catalog.Pipelines[ref.Target()]
	if !ok {
		return nil
	}
	spec.Tasks = slices.Clone(spec.Tasks)
	for i, t := range spec.Tasks {
		if paced := r.paced(t.timeout()); paced > 0 {
			spec.Tasks[i].Timeout = &metav1.Duration{Duration: paced}
		}
	}
	return &spec
}

func (t PipelineTask) timeout() time.Duration {
	if t.Timeout == nil {
		return 0
	}
	return t.Timeout.Duration
}

// fault is what makes a run end before any of its tasks, or nil.
func (r Rules) fault(run *PipelineRun, spec *PipelineSpec) *Condition {
	fault := func(reason, message string) *Condition {
		return &Condition{Status: corev1.ConditionFalse, Reason: reason, Message: message}
	}
	if spec == nil {
		name := ""
		if run.Spec.PipelineRef != nil {
			name = run.Spec.PipelineRef.Target()
		}
		return fault(ReasonCouldntGetPipeline, fmt.Sprintf(
			"Error retrieving pipeline for pipelinerun %s/%s: pipelines.tekton.dev %q not found", run.Namespace, run.Name, name))
	}
	if err := checkGraph(*spec); err != nil {
		return fault(ReasonPipelineInvalidGraph, fmt.Sprintf(
			"PipelineRun %s/%s's Pipeline DAG is invalid: %v", run.Namespace, run.Name, err))
	}
	for _, t := range slices.Concat(spec.Tasks, spec.Finally) {
		if t.TaskSpec == nil && !r.knows(t.TaskRef) {
			return fault(ReasonCouldntGetTask, fmt.Sprintf(
				"Pipeline %s/%s can't be Run; it contains Tasks that don't exist: Couldn't retrieve Task %q",
				run.Namespace, pipelineLabel(run), t.Name))
		}
	}
	return nil
}

func (r Rules) knows(task *Ref) bool {
	if task == nil {
		return false
	}
	_, ok := r.Catalog.Tasks[task.Target()]
	return ok
}

func unfinished(children []*TaskRun) []string {
	var names []string
	for _, child := range children {
		if !child.Status.Conditions.Done() {
			names = append(names, child.Name)
		}
	}
	return names
}

// end writes a final condition.
func end(status *PipelineRunStatus, c Condition, now time.Time) {
	status.Conditions.set(c.Status, c.Reason, c.Message, now)
	status.CompletionTime = timePointer(now)
}
