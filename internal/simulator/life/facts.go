package life

import (
	"slices"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Reasons why a pipeline task is never created.
const (
	skipWhen           = "When Expressions evaluated to false"
	skipParent         = "Parent Tasks were skipped"
	skipStopping       = "PipelineRun was stopping"
	skipCancelled      = "PipelineRun was gracefully cancelled"
	skipStopped        = "PipelineRun was gracefully stopped"
	skipNoResults      = "Results were missing"
	skipTimeout        = "PipelineRun timeout has been reached"
	skipTasksTimeout   = "PipelineRun Tasks timeout has been reached"
	skipFinallyTimeout = "PipelineRun Finally timeout has been reached"
)

// pipelineNode is a pipeline task and what has become of it.
type pipelineNode struct {
	task  PipelineTask
	final bool
	run   *TaskRun // nil: not created
	// lost says that the run is referred to but was not among the children: gone, or not seen yet.
	lost bool
}

func (n *pipelineNode) condition() Condition {
	if n.run == nil {
		return Condition{}
	}
	return n.run.Status.Conditions.Succeeded()
}

func (n *pipelineNode) succeeded() bool { return n.condition().Status == corev1.ConditionTrue }
func (n *pipelineNode) failed() bool    { return n.condition().Status == corev1.ConditionFalse }
func (n *pipelineNode) going() bool     { return n.run != nil && !n.succeeded() && !n.failed() }
func (n *pipelineNode) ignored() bool   { return n.task.OnError == OnErrorContinue }

func (n *pipelineNode) cancelled() bool {
	return n.failed() && n.condition().Reason == ReasonTaskRunCancelled
}

// timedOut tells a task that the PipelineRun's timeout ended from one that somebody cancelled.
func (n *pipelineNode) timedOut() bool {
	return n.cancelled() && n.run.Spec.StatusMessage == messageCancelledByPipelineTimeOut
}

// facts is all that a PipelineRun's next step depends on.
type facts struct {
	run   *PipelineRun
	now   time.Time
	rules Rules
	nodes []*pipelineNode
	// late is whether the tasks are over their timeout.
	late bool
	// memo holds the answers of skipReason, which ask each other.
	memo map[string]string
}

// gather joins the resolved pipeline with the children there are.
func (r Rules) gather(run *PipelineRun, children []*TaskRun, now time.Time) *facts {
	f := &facts{run: run, now: now, rules: r, memo: map[string]string{}}
	add := func(tasks []PipelineTask, final bool) {
		for _, t := range tasks {
			n := &pipelineNode{task: t, final: final}
			for _, child := range children {
				if child.Labels[LabelPipelineTask] == t.Name {
					n.run = child
				}
			}
			f.nodes = append(f.nodes, n)
		}
	}
	add(run.Status.PipelineSpec.Tasks, false)
	add(run.Status.PipelineSpec.Finally, true)
	for _, ref := range run.Status.ChildReferences {
		if n := f.node(ref.PipelineTaskName); n != nil && n.run == nil {
			n.run, n.lost = f.child(n), true
			n.run.Name = ref.Name
		}
	}
	f.late = f.tasksTimedOut()
	return f
}

func (f *facts) node(name string) *pipelineNode {
	for _, n := range f.nodes {
		if n.task.Name == name {
			return n
		}
	}
	return nil
}

// skipReason says why the task will not be created, or nothing.
func (f *facts) skipReason(n *pipelineNode) string {
	reason, known := f.memo[n.task.Name]
	if known {
		return reason
	}
	switch {
	case n.run != nil:
	case n.final:
		if f.tasksDone() {
			reason = f.finalSkipReason(n)
		}
	default:
		reason = f.taskSkipReason(n)
	}
	f.memo[n.task.Name] = reason
	return reason
}

func (f *facts) taskSkipReason(n *pipelineNode) string {
	ready := f.parentsDone(n)
	switch {
	case f.stopping():
		return skipStopping
	case f.run.Spec.Status == SpecCancelledRunFinally:
		return skipCancelled
	case f.run.Spec.Status == SpecStoppedRunFinally:
		return skipStopped
	case ready && !f.allowed(n):
		return skipWhen
	case f.parentSkipped(n):
		return skipParent
	case ready && f.resultsMissing(n):
		return skipNoResults
	case ready && f.timedOut():
		return skipTimeout
	case ready && f.late:
		return skipTasksTimeout
	default:
		return ""
	}
}

func (f *facts) finalSkipReason(n *pipelineNode) string {
	switch {
	case f.resultsMissing(n):
		return skipNoResults
	case !f.allowed(n):
		return skipWhen
	case f.timedOut():
		return skipTimeout
	case f.finallyTimedOut():
		return skipFinallyTimeout
	default:
		return ""
	}
}

func (f *facts) done(n *pipelineNode) bool {
	return n.succeeded() || n.failed() || f.skipReason(n) != ""
}

func (f *facts) allDone(final bool) bool {
	return !slices.ContainsFunc(f.nodes, func(n *pipelineNode) bool { return n.final == final && !f.done(n) })
}

func (f *facts) tasksDone() bool { return f.allDone(false) }

// stopping reports whether a task's failure keeps further tasks from being created.
func (f *facts) stopping() bool {
	return slices.ContainsFunc(f.nodes, func(n *pipelineNode) bool { return !n.final && n.failed() && !n.ignored() })
}

func (f *facts) parentsDone(n *pipelineNode) bool {
	return !slices.ContainsFunc(parents(n.task), func(name string) bool { return !f.done(f.node(name)) })
}

// parentSkipped leaves out parents that their own when expressions skipped: those do not stop what comes after.
func (f *facts) parentSkipped(n *pipelineNode) bool {
	return slices.ContainsFunc(parents(n.task), func(name string) bool {
		reason := f.skipReason(f.node(name))
		return reason != "" && reason != skipWhen
	})
}

// allowed evaluates the when expressions. CEL is not evaluated and lets the task run.
func (f *facts) allowed(n *pipelineNode) bool {
	for _, w := range f.results().when(n.task.When) {
		if w.CEL == "" && slices.Contains(w.Values, w.Input) != (w.Operator != "notin") {
			return false
		}
	}
	return true
}

func (f *facts) resultsMissing(n *pipelineNode) bool {
	known := f.results()
	for _, p := range known.params(n.task.Params) {
		if len(resultTasks(p.Value)) > 0 {
			return true
		}
	}
	return slices.ContainsFunc(known.when(n.task.When), func(w When) bool { return len(resultTasks(w.Input)) > 0 })
}

// results is what the tasks that succeeded hand on.
func (f *facts) results() values {
	v := values{}
	for _, n := range f.nodes {
		if !n.succeeded() {
			continue
		}
		for _, result := range n.run.Status.Results {
			if text, ok := result.Value.(string); ok {
				v["tasks."+n.task.Name+".results."+result.Name] = text
			}
		}
	}
	return v
}
