package life

import (
	"slices"
	"time"
)

// bound is a length of time after which something ends; none when it is not positive.
type bound time.Duration

func (b bound) passed(from, now time.Time) bool { return b > 0 && now.Sub(from) > time.Duration(b) }

// next is the first moment at which the bound has passed, none when it has already.
func (b bound) next(from, now time.Time) time.Time {
	if b <= 0 || b.passed(from, now) {
		return time.Time{}
	}
	return from.Add(time.Duration(b) + time.Millisecond)
}

func (r Rules) pipelineTimeout(run *PipelineRun) bound {
	if t := run.Spec.Timeouts; t != nil && t.Pipeline != nil {
		return bound(t.Pipeline.Duration)
	}
	return bound(r.defaultTimeout())
}

// tasksTimeout and finallyTimeout are given, or what the other one leaves of the whole.
func (r Rules) tasksTimeout(run *PipelineRun) bound {
	t := run.Spec.Timeouts
	switch {
	case t == nil:
		return 0
	case t.Tasks != nil:
		return bound(t.Tasks.Duration)
	case t.Pipeline != nil && t.Finally != nil && t.Pipeline.Duration > 0 && t.Finally.Duration > 0:
		return bound(t.Pipeline.Duration - t.Finally.Duration)
	default:
		return 0
	}
}

func (r Rules) finallyTimeout(run *PipelineRun) bound {
	t := run.Spec.Timeouts
	switch {
	case t == nil:
		return 0
	case t.Finally != nil:
		return bound(t.Finally.Duration)
	case t.Pipeline != nil && t.Tasks != nil && t.Pipeline.Duration > 0 && t.Tasks.Duration > 0:
		return bound(t.Pipeline.Duration - t.Tasks.Duration)
	default:
		return 0
	}
}

func (f *facts) timedOut() bool {
	return f.rules.pipelineTimeout(f.run).passed(f.run.Status.StartTime.Time, f.now)
}

// tasksTimedOut looks at the clock until the finally tasks begin. From then on it is what happened to the tasks that
// counts, or a long finally task would make tasks late that were in time.
func (f *facts) tasksTimedOut() bool {
	if f.run.Status.FinallyStartTime == nil {
		return f.rules.tasksTimeout(f.run).passed(f.run.Status.StartTime.Time, f.now)
	}
	return slices.ContainsFunc(f.nodes, func(n *pipelineNode) bool { return !n.final && n.timedOut() }) ||
		slices.ContainsFunc(f.run.Status.SkippedTasks, func(s SkippedTask) bool { return s.Reason == skipTasksTimeout })
}

func (f *facts) finallyTimedOut() bool {
	begun := f.run.Status.FinallyStartTime
	return begun != nil && f.rules.finallyTimeout(f.run).passed(begun.Time, f.now)
}

// nextTimeout is when time alone will change something, zero when it will not.
func (f *facts) nextTimeout() time.Time {
	status := f.run.Status
	next := f.rules.pipelineTimeout(f.run).next(status.StartTime.Time, f.now)
	if status.FinallyStartTime == nil {
		return earlier(next, f.rules.tasksTimeout(f.run).next(status.StartTime.Time, f.now))
	}
	return earlier(next, f.rules.finallyTimeout(f.run).next(status.FinallyStartTime.Time, f.now))
}

// earlier is the earlier of two moments; the zero time is none.
func earlier(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

func (b bound) duration() time.Duration { return time.Duration(b) }
