package life

import (
	"errors"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// World is one PipelineRun with its TaskRuns and nothing else: a life in memory, for sample objects and for tests.
type World struct {
	Rules Rules
	Run   *PipelineRun
	// TaskRuns in the order of their creation.
	TaskRuns []*TaskRun
}

// ErrNoEnd is returned by Play when a life takes more steps than any has.
var ErrNoEnd = errors.New("life does not come to rest")

// mostSteps is far above what the longest pipeline takes; it bounds a mistake.
const mostSteps = 10_000

// Play lives from now on, its clock leaping from event to event, until stop says so or nothing will happen any more.
// It returns the time by then.
func (w *World) Play(now time.Time, stop func() bool) (time.Time, error) {
	for range mostSteps {
		if stop() {
			return now, nil
		}
		changed, next := w.Step(now)
		switch {
		case changed:
		case next.IsZero():
			return now, nil
		case next.After(now):
			now = next
		}
	}
	return now, ErrNoEnd
}

// Step lets one thing happen: somebody acts, else the PipelineRun moves, else the first TaskRun that can. It reports
// whether something did, and when something will though nothing does.
func (w *World) Step(now time.Time) (changed bool, next time.Time) {
	word, act, next := w.Rules.Person(w.Run, w.TaskRuns, now)
	if act {
		w.Run.Spec.Status = word
		return true, now
	}
	moves := w.Rules.MovePipelineRun(w.Run, w.TaskRuns, now)
	w.apply(moves, now)
	if moves.Changed || len(moves.Create)+len(moves.Cancel) > 0 {
		return true, now
	}
	next = earlier(next, moves.Next)
	for _, run := range w.TaskRuns {
		moved, at := w.Rules.MoveTaskRun(run, now)
		if moved {
			return true, now
		}
		next = earlier(next, at)
	}
	return false, next
}

func (w *World) apply(moves Moves, now time.Time) {
	if moves.Label != "" {
		if w.Run.Labels == nil {
			w.Run.Labels = map[string]string{}
		}
		w.Run.Labels[LabelPipeline] = moves.Label
	}
	for _, run := range moves.Create {
		if slices.ContainsFunc(w.TaskRuns, func(have *TaskRun) bool { return have.Name == run.Name }) {
			continue // of an earlier attempt at the same move
		}
		run.CreationTimestamp = metav1.NewTime(now)
		run.UID = types.UID(digest(string(w.Run.UID), run.Name)[:32])
		w.TaskRuns = append(w.TaskRuns, run)
	}
	for _, run := range w.TaskRuns {
		if slices.Contains(moves.Cancel, run.Name) {
			run.Spec.Status, run.Spec.StatusMessage = SpecTaskRunCancelled, moves.CancelMessage
		}
	}
}
