package life

import (
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"strings"
)

// FateAnnotation on a PipelineRun or a TaskRun says how it will go: the text of a Fate.
const FateAnnotation = "simulator.hangar.io/fate"

// Outcome is how a run goes.
type Outcome string

// Outcomes. The first four are about one task of the run; the last four are what somebody does to it.
const (
	Succeed  Outcome = "succeed" // everything goes well; needs no task
	Fail     Outcome = "fail"    // a step of the task exits with code 1, in every attempt
	Flaky    Outcome = "flaky"   // a step of the task fails in the first attempt only
	Hang     Outcome = "hang"    // a step of the task never ends
	Cancel   Outcome = "cancel"  // somebody cancels the run while the task runs
	CancelFn Outcome = "cancelRunFinally"
	StopFn   Outcome = "stopRunFinally"
	Unpend   Outcome = "unpend" // somebody lets the pending run start; needs no task
)

// Fate is an Outcome and where it strikes. The zero Fate is Succeed.
type Fate struct {
	Outcome Outcome
	// Task is a pipeline task's name, Step one of its steps; without a step it is the last.
	Task, Step string
}

// String is the annotation's text: outcome, outcome:task or outcome:task/step.
func (f Fate) String() string {
	if f.Outcome == "" {
		f.Outcome = Succeed
	}
	text := string(f.Outcome)
	if f.Task != "" {
		text += ":" + f.Task
	}
	if f.Step != "" {
		text += "/" + f.Step
	}
	return text
}

// ParseFate reads what String writes.
func ParseFate(text string) (Fate, error) {
	outcome, where, hasTask := strings.Cut(text, ":")
	task, step, hasStep := strings.Cut(where, "/")
	fate := Fate{Outcome: Outcome(outcome), Task: task, Step: step}
	switch fate.Outcome {
	case Succeed, Unpend:
		if hasTask {
			return Fate{}, fmt.Errorf("fate %q: %s is about no task", text, outcome)
		}
	case Fail, Flaky, Hang, Cancel, CancelFn, StopFn:
		if task == "" || hasStep && step == "" || strings.ContainsRune(step, '/') {
			return Fate{}, fmt.Errorf("fate %q: want %s:task or %s:task/step", text, outcome, outcome)
		}
	default:
		return Fate{}, fmt.Errorf("fate %q: no such outcome", text)
	}
	return fate, nil
}

// request is what somebody with this fate writes to spec.status.
func (f Fate) request() string {
	switch f.Outcome {
	case Cancel:
		return SpecCancelled
	case CancelFn:
		return SpecCancelledRunFinally
	case StopFn:
		return SpecStoppedRunFinally
	default:
		return ""
	}
}

// Percentages of the TaskRuns without a written fate that fail, and that fail once.
const (
	drawnFail  = 6
	drawnFlaky = 10
)

// taskFate is the fate as far as this TaskRun goes. An annotation that cannot be read counts as none.
func (r Rules) taskFate(run *TaskRun) Fate {
	task := run.Labels[LabelPipelineTask]
	if text, ok := run.Annotations[FateAnnotation]; ok {
		if fate, err := ParseFate(text); err == nil {
			if fate.Task != task && task != "" {
				return Fate{Outcome: Succeed}
			}
			return fate
		}
	}
	switch draw := r.random(run.Namespace, run.Name, "fate").IntN(100); {
	case draw < drawnFail:
		return Fate{Outcome: Fail, Task: task}
	case draw < drawnFail+drawnFlaky && run.Spec.Retries > 0:
		return Fate{Outcome: Flaky, Task: task}
	default:
		return Fate{Outcome: Succeed}
	}
}

// random is a source that gives the same numbers for the same seed and words, whoever asks and whenever.
func (r Rules) random(words ...string) *rand.Rand {
	h := fnv.New64a()
	for _, w := range words {
		_, _ = h.Write([]byte(w)) // a hash never fails
		_, _ = h.Write([]byte{0})
	}
	return rand.New(rand.NewPCG(r.Seed, h.Sum64())) //nolint:gosec // determinism is the point; nothing is secret
}
