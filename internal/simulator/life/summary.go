package life

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// counts is how the tasks of a pipeline stand; every task is in exactly one of them but for lateSkipped, which are
// among the skipped.
type counts struct {
	succeeded, failed, ignored, cancelled, skipped, lateSkipped, incomplete int
}

func (f *facts) count() counts {
	var c counts
	for _, n := range f.nodes {
		reason := f.skipReason(n)
		switch {
		case n.succeeded():
			c.succeeded++
		case n.timedOut():
			c.failed++
		case n.cancelled():
			c.cancelled++
		case n.failed() && n.ignored():
			c.ignored++
		case n.failed():
			c.failed++
		case reason == skipTimeout, reason == skipTasksTimeout, reason == skipFinallyTimeout:
			c.skipped++
			c.lateSkipped++
		case reason != "":
			c.skipped++
		default:
			c.incomplete++
		}
	}
	return c
}

func (c counts) completed() int { return c.succeeded + c.failed + c.cancelled + c.ignored }

// endMessage is the message of a run that has ended. Tekton writes no colon after Cancelled.
func (c counts) endMessage() string {
	failed := fmt.Sprintf("Failed: %d", c.failed+c.ignored)
	if c.ignored > 0 {
		failed += fmt.Sprintf(" (Ignored: %d)", c.ignored)
	}
	return fmt.Sprintf("Tasks Completed: %d (%s, Cancelled %d), Skipped: %d", c.completed(), failed, c.cancelled, c.skipped)
}

func (c counts) goingMessage() string {
	return fmt.Sprintf("Tasks Completed: %d (Failed: %d, Cancelled %d), Incomplete: %d, Skipped: %d",
		c.completed(), c.failed, c.cancelled, c.incomplete, c.skipped)
}

// condition is what the run's condition has to say now.
func (f *facts) condition() Condition {
	name := f.run.Name
	if f.timedOut() {
		return late("PipelineRun %q failed to finish within %q", name, f.rules.pipelineTimeout(f.run))
	}
	if f.late && f.allDone(true) {
		return late("PipelineRun %q failed due to tasks failed to finish within %q", name, f.rules.tasksTimeout(f.run))
	}
	c := f.count()
	if c.incomplete > 0 {
		return Condition{Status: corev1.ConditionUnknown, Reason: f.goingReason(c), Message: c.goingMessage()}
	}
	return f.endCondition(c)
}

func late(format, name string, timeout bound) Condition {
	message := fmt.Sprintf(format, name, timeout)
	return Condition{Status: corev1.ConditionFalse, Reason: ReasonPipelineRunTimeout, Message: message}
}

func (f *facts) goingReason(c counts) string {
	switch {
	case f.late:
		return ReasonTimedOutRunningFinally
	case f.run.Spec.Status == SpecCancelledRunFinally:
		return ReasonCancelledRunningFinally
	case f.run.Spec.Status == SpecStoppedRunFinally:
		return ReasonStoppedRunningFinally
	case c.cancelled > 0, c.failed > 0 && f.allDone(true):
		// allDone(true) holds when there are no finally tasks: with them a run stays Running until they are done.
		return ReasonPipelineRunStopping
	default:
		return ReasonRunning
	}
}

// endCondition ranks what happened: a failure outranks a cancel, a cancel outranks success.
func (f *facts) endCondition(c counts) Condition {
	end := Condition{Status: corev1.ConditionFalse, Message: c.endMessage()}
	asked := f.run.Spec.Status == SpecCancelledRunFinally || f.run.Spec.Status == SpecStoppedRunFinally
	switch {
	case c.failed > 0 || c.lateSkipped > 0:
		end.Reason = ReasonFailed
	case asked:
		end.Reason = ReasonCancelled
		end.Message = cancelledMessage(f.run)
	case c.cancelled > 0:
		end.Reason = ReasonCancelled
	case c.skipped > 0:
		end.Status, end.Reason = corev1.ConditionTrue, ReasonCompleted
	default:
		end.Status, end.Reason = corev1.ConditionTrue, ReasonSucceeded
	}
	return end
}

func cancelledMessage(run *PipelineRun) string {
	return fmt.Sprintf("PipelineRun %q was cancelled", run.Name)
}

// String writes the bound as Tekton does in its messages.
func (b bound) String() string { return time.Duration(b).String() }
