package life

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

// advance cancels and creates what the facts ask for, then writes down how the run stands.
func (r Rules) advance(f *facts) Moves {
	before := f.run.Status.copy()
	var moves Moves
	f.cancel(&moves)
	f.create(&moves)

	status := &f.run.Status
	condition := f.condition()
	status.ChildReferences = f.childReferences()
	status.SkippedTasks = f.skippedTasks()
	if condition.Status == corev1.ConditionUnknown {
		status.Conditions.set(condition.Status, condition.Reason, condition.Message, f.now)
		moves.Next = f.nextTimeout()
	} else {
		status.Results = f.pipelineResults()
		end(status, condition, f.now)
	}
	moves.Changed = !equality.Semantic.DeepEqual(before, *status)
	return moves
}

// copy is deep as far as advance changes in place: everything else is replaced whole.
func (s PipelineRunStatus) copy() PipelineRunStatus {
	s.Conditions = append(Conditions(nil), s.Conditions...)
	return s
}

// cancel ends the tasks that a graceful cancel or a timeout ends. Finally tasks outlive all but their own timeout and
// the run's.
func (f *facts) cancel(moves *Moves) {
	ends := func(which func(*pipelineNode) bool, message string) {
		for _, n := range f.nodes {
			if n.going() && which(n) && n.run.Spec.Status != SpecTaskRunCancelled {
				moves.Cancel = append(moves.Cancel, n.run.Name)
				moves.CancelMessage = message
			}
		}
	}
	switch {
	case f.timedOut():
		ends(func(*pipelineNode) bool { return true }, messageCancelledByPipelineTimeOut)
	case f.run.Spec.Status == SpecCancelledRunFinally:
		ends(func(n *pipelineNode) bool { return !n.final }, messageCancelledByPipelineRun)
	case f.run.Status.FinallyStartTime == nil && f.late:
		ends(func(n *pipelineNode) bool { return !n.final }, messageCancelledByPipelineTimeOut)
	case f.finallyTimedOut():
		ends(func(n *pipelineNode) bool { return n.final }, messageCancelledByPipelineTimeOut)
	}
}

// create makes the tasks whose turn it is: those whose parents are done, and the finally tasks when all others are. What
// was lost is made again; if it was only not seen yet, that comes to nothing.
func (f *facts) create(moves *Moves) {
	var turn []*pipelineNode
	for _, n := range f.nodes {
		if n.lost {
			moves.Create = append(moves.Create, n.run)
		}
		if n.run != nil || f.skipReason(n) != "" {
			continue
		}
		if n.final && f.tasksDone() || !n.final && f.parentsDone(n) {
			turn = append(turn, n)
		}
	}
	for _, n := range turn {
		if n.final && f.run.Status.FinallyStartTime == nil {
			f.run.Status.FinallyStartTime = timePointer(f.now)
		}
		n.run = f.child(n)
		moves.Create = append(moves.Create, n.run)
	}
}
