package tekton

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Object is a PipelineRun or a TaskRun of any version. It holds nothing of the
// JSON that it was read from.
type Object struct {
	Kind     string   `json:"kind"`
	Metadata Metadata `json:"metadata"`
	Spec     Spec     `json:"spec"`
	Status   Status   `json:"status"`
}

// Metadata names an object and says whose it is.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   string            `json:"namespace"`
	UID         string            `json:"uid"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	Owners      []Owner           `json:"ownerReferences"`
}

// Owner is another object that this one belongs to.
type Owner struct {
	APIVersion string `json:"apiVersion"`
	Kind       string `json:"kind"`
	UID        string `json:"uid"`
}

// isRun says whether it is a PipelineRun of Tekton, of any version.
func (o Owner) isRun() bool {
	return o.Kind == "PipelineRun" && strings.HasPrefix(o.APIVersion, "tekton.dev/")
}

// Spec is what a run was asked to do.
type Spec struct {
	Pipeline Reference `json:"pipelineRef"`
	Task     Reference `json:"taskRef"`
	Params   []Param   `json:"params"`
}

// Reference names a Pipeline or a Task: by name, or by what a resolver is given.
type Reference struct {
	Name   string  `json:"name"`
	Params []Param `json:"params"`
}

// Param is a parameter.
type Param struct {
	Name  string          `json:"name"`
	Value json.RawMessage `json:"value"`
}

// Text is the value of a parameter that is a text, else "".
func (p Param) Text() string {
	var s string
	if json.Unmarshal(p.Value, &s) != nil {
		return "" // a list or an object
	}
	return s
}

// Status is how far a run came.
type Status struct {
	Started    Time        `json:"startTime"`
	Completed  Time        `json:"completionTime"`
	Conditions []Condition `json:"conditions"`
	Steps      []Step      `json:"steps"` // of a TaskRun
	// What a PipelineRun made, and in runs of old its TaskRuns themselves.
	Children children `json:"childReferences,omitzero"`
	TaskRuns embedded `json:"taskRuns,omitzero"`
}

// Step is how far a step of a TaskRun came.
type Step struct {
	Name              string      `json:"name"`
	Container         string      `json:"container"`
	TerminationReason string      `json:"terminationReason"`
	Terminated        *Terminated `json:"terminated"`
}

// Terminated is how a step's container ended.
type Terminated struct {
	ExitCode int64 `json:"exitCode"`
}

// Condition is one thing that is known of a run.
type Condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Reason  string `json:"reason"`
	Message string `json:"message"`
}

// Time is a moment, zero where there is none or where what stands there is
// none.
type Time struct{ time.Time }

// UnmarshalJSON takes everything.
func (t *Time) UnmarshalJSON(raw []byte) error {
	t.Time = time.Time{}
	text, _ := strconv.Unquote(string(raw)) // what is no text is no time either
	if parsed, err := time.Parse(time.RFC3339, text); err == nil {
		t.Time = parsed.UTC()
	}
	return nil
}

// Decode reads an object.
func Decode(raw []byte) (*Object, error) {
	var o Object
	if err := json.Unmarshal(raw, &o); err != nil {
		return nil, fmt.Errorf("reading an archived object: %w", withoutText(err))
	}
	return &o, nil
}

// withoutText leaves out of a decoder's error what stood in the object, which
// may be a secret of somebody's pipeline.
func withoutText(err error) error {
	if t, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return fmt.Errorf("%s holds a %s", t.Field, firstWord(t.Value))
	}
	return errors.New("it is not JSON")
}

// firstWord leaves the number out of "number 5".
func firstWord(s string) string {
	for i, c := range s {
		if c == ' ' {
			return s[:i]
		}
	}
	return s
}

// Run says which PipelineRun a TaskRun is of: by the uid, which is the owner's
// or a label's, or by the name alone where the archive has neither. Both are
// empty for one that is of none.
func (o *Object) Run() (uid, name string) {
	for _, owner := range o.Metadata.Owners {
		if owner.isRun() {
			return owner.UID, ""
		}
	}
	if uid := o.Metadata.Labels["tekton.dev/pipelineRunUID"]; uid != "" {
		return uid, ""
	}
	return "", o.Metadata.Labels["tekton.dev/pipelineRun"]
}

// BelongsTo says whether a TaskRun is of the PipelineRun.
func (o *Object) BelongsTo(run Metadata) bool {
	uid, name := o.Run()
	return uid != "" && uid == run.UID || uid == "" && name != "" && name == run.Name
}
