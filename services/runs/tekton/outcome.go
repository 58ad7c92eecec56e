package tekton

// Outcome is how a run ended.
type Outcome string

// The outcomes, as callers read them.
const (
	// Unfinished is no outcome: the run goes on, or nobody saw its end.
	Unfinished Outcome = ""
	Succeeded  Outcome = "succeeded"
	Failed     Outcome = "failed"
	Cancelled  Outcome = "cancelled"
	TimedOut   Outcome = "timedOut"
)

// Failed says whether it is one that somebody wants explained: a run that timed
// out or was cancelled failed too.
func (o Outcome) Failed() bool { return o != Succeeded && o != Unfinished }

// Ended gives the condition that says how a run ended or stands: the one of
// type Succeeded, or a zero one.
func (o *Object) Ended() Condition {
	for _, c := range o.Status.Conditions {
		if c.Type == "Succeeded" {
			return c
		}
	}
	return Condition{}
}

// Outcome says how a run ended. The condition alone counts: a run that somebody
// asked to cancel may still succeed, and one whose condition is Unknown has not
// ended whatever its reason is.
func (o *Object) Outcome() Outcome {
	c := o.Ended()
	switch c.Status {
	case "True":
		return Succeeded
	case "False":
		return failure(c.Reason)
	default:
		return Unfinished
	}
}

// failure sorts the reasons of what did not succeed. A run that was stopped
// gracefully has the reason of one that was cancelled.
func failure(reason string) Outcome {
	switch reason {
	case "Cancelled", "PipelineRunCancelled", "TaskRunCancelled":
		return Cancelled
	case "PipelineRunTimeout", "TaskRunTimeout":
		return TimedOut
	default:
		return Failed
	}
}

// Failure gives of a TaskRun what says how it failed, and nothing else.
func (o *Object) Failure() *Object {
	f := &Object{Kind: o.Kind, Metadata: Metadata{Name: o.Metadata.Name, UID: o.Metadata.UID}, Spec: Spec{Task: Reference{Name: o.Spec.Task.Name}}}
	if name, ok := o.Metadata.Labels[taskLabel]; ok {
		f.Metadata.Labels = map[string]string{taskLabel: name}
	}
	f.Status = Status{Started: o.Status.Started, Completed: o.Status.Completed, Conditions: []Condition{o.Ended()}, Steps: o.Status.Steps}
	return f
}
