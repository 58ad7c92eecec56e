package testkube

import (
	"maps"
	"strings"
	"time"
)

// executionsPath is where executions are, below the version.
const executionsPath = "test-workflow-executions"

// appTag is the tag that says whose execution it is.
const appTag = "app"

// The statuses that something here depends on. Others are passed on as they are.
const (
	statusPassed  = "passed"
	statusAborted = "aborted"
)

// noteAborted is the note of a run that was aborted after it had passed.
const noteAborted = "Testkube's agent reported this run aborted after every step of it had passed"

// execution is what is read of an execution, in a list or in full.
type execution struct {
	ID          string            `json:"id"`
	Name        string            `json:"name"`
	ScheduledAt moment            `json:"scheduledAt"`
	Result      result            `json:"result"`
	Workflow    workflow          `json:"workflow"`
	Tags        map[string]string `json:"tags"`
}

type workflow struct {
	Name   string            `json:"name"`
	Labels map[string]string `json:"labels"`
}

type result struct {
	Status     string `json:"status"`
	StartedAt  moment `json:"startedAt"`
	FinishedAt moment `json:"finishedAt"`
	DurationMS int64  `json:"durationMs"`
	// Steps and Initialization are absent in a list.
	Steps          map[string]step `json:"steps"`
	Initialization *step           `json:"initialization"`
}

type step struct {
	Status string `json:"status"`
}

// whole says whether it is one at all: what has no id says nothing about the one
// that was asked for.
func (e *execution) whole() bool { return e.ID != "" }

// of says whether the execution is this one and the app's.
func (e *execution) of(app, id string) bool {
	return e.ID == id && e.Tags[appTag] == app
}

// passedAll says whether every step passed. An execution of which no step is
// known is none.
func (r result) passedAll() bool {
	if len(r.Steps) == 0 || (r.Initialization != nil && r.Initialization.Status != statusPassed) {
		return false
	}
	for _, s := range r.Steps {
		if s.Status != statusPassed {
			return false
		}
	}
	return true
}

// moment is a time. Testkube gives one that is not set as year 1; one that
// cannot be read is taken for that, as a list is worth more than one of its
// times.
type moment struct{ time.Time }

func (m *moment) UnmarshalText(text []byte) error {
	t, err := time.Parse(time.RFC3339Nano, string(text))
	if err != nil {
		t = time.Time{}
	}
	m.Time = t.UTC()
	return nil
}

// Test is one test run of an app.
type Test struct {
	ID, Name string
	Workflow string // empty: not known
	// Status is Testkube's word, but for a run that was aborted after every step
	// had passed: that one counts as passed, and StatusNote says so.
	Status, StatusNote string
	// Start and End are zero while it has not started, or not ended.
	Start, End time.Time
	Duration   time.Duration // 0: not known
	// Labels are those of its workflow and its own tags, which win. Never nil.
	Labels map[string]string
}

func (e *execution) test() Test {
	t := Test{
		ID: e.ID, Name: e.Name, Workflow: e.Workflow.Name, Status: e.Result.Status,
		Start: e.Result.StartedAt.Time, End: e.Result.FinishedAt.Time, Labels: map[string]string{},
	}
	if !t.End.IsZero() && e.Result.DurationMS > 0 {
		t.Duration = time.Duration(e.Result.DurationMS) * time.Millisecond
	}
	if t.Status == statusAborted && e.Result.passedAll() {
		t.Status, t.StatusNote = statusPassed, noteAborted
	}
	maps.Copy(t.Labels, e.Workflow.Labels)
	maps.Copy(t.Labels, e.Tags)
	return t
}

// countSegments counts from the one that executions are in; a relay may have
// its own before it.
func countSegments(path string) int {
	_, rest, found := strings.Cut(path, "/"+executionsPath)
	if !found {
		return 0
	}
	return 2 + strings.Count(rest, "/")
}
