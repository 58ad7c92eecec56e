package runs

import (
	"fmt"
	"time"

	"hangar.io/glidepath/services/runs/results"
	"hangar.io/glidepath/services/runs/tekton"
)

// row is a run as lists show it: schema Run, without the objects.
type row struct {
	Result          string         `json:"result"`
	Name            string         `json:"name"`
	Namespace       string         `json:"namespace,omitempty"`
	App             string         `json:"app,omitempty"`
	Pipeline        string         `json:"pipeline,omitempty"`
	Flow            string         `json:"flow,omitempty"`
	Status          tekton.Outcome `json:"status"`
	Reason          string         `json:"reason,omitempty"`
	Message         string         `json:"message,omitempty"`
	CreatedAt       time.Time      `json:"createdAt"`
	StartTime       *time.Time     `json:"startTime,omitempty"`
	CompletionTime  *time.Time     `json:"completionTime,omitempty"`
	DurationSeconds *int64         `json:"durationSeconds,omitempty"`
	Revision        string         `json:"revision,omitempty"`
	Branch          string         `json:"branch,omitempty"`
	Initiator       string         `json:"initiator,omitempty"`
}

// run is an archived PipelineRun that has finished.
type run struct {
	row    row
	object *tekton.Object
	record results.Record
}

// readRun reads the record of a PipelineRun. ok is false when the run has not
// finished: there is no telling whether the archive saw its end.
func readRun(rec results.Record) (r run, ok bool, err error) {
	object, err := decode(rec)
	if err != nil {
		return run{}, false, err
	}
	outcome := object.Outcome()
	return run{row: newRow(object, rec), object: object, record: rec}, outcome != tekton.Unfinished, nil
}

func decode(rec results.Record) (*tekton.Object, error) {
	object, err := tekton.Decode(rec.Value)
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", results.ErrBadRecord, rec.Name, err)
	}
	return object, nil
}

func newRow(o *tekton.Object, rec results.Record) row {
	ended, facts := o.Ended(), o.Facts()
	r := row{
		Result: rec.UID, Name: o.Metadata.Name,
		Status: o.Outcome(), Reason: ended.Reason, Message: ended.Message,
		CreatedAt: rec.Created.UTC(),
		StartTime: moment(o.Status.Started), CompletionTime: moment(o.Status.Completed),
		Pipeline: facts.Pipeline, Flow: facts.Flow, Revision: facts.Revision, Branch: facts.Branch, Initiator: facts.Initiator,
	}
	if took := o.Status.Completed.Sub(o.Status.Started.Time); r.StartTime != nil && r.CompletionTime != nil && took >= 0 {
		seconds := int64(took / time.Second)
		r.DurationSeconds = &seconds
	}
	return r
}

func moment(t tekton.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t.Time
}
