package explain

import (
	"cmp"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"slices"
	"strings"
	"time"
)

// taskRun is what is read of an archived TaskRun, of v1 as of v1beta1.
type taskRun struct {
	Metadata struct {
		Name   string            `json:"name"`
		UID    string            `json:"uid"`
		Labels map[string]string `json:"labels"`
	} `json:"metadata"`
	Spec struct {
		TaskRef struct {
			Name string `json:"name"`
		} `json:"taskRef"`
	} `json:"spec"`
	Status struct {
		StartTime  string      `json:"startTime"`
		Conditions []condition `json:"conditions"`
		Steps      []step      `json:"steps"`
	} `json:"status"`
}

type condition struct {
	Type    string `json:"type"`
	Status  string `json:"status"`
	Message string `json:"message"`
}

type step struct {
	Name              string `json:"name"`
	Container         string `json:"container"`
	TerminationReason string `json:"terminationReason"`
	Terminated        *struct {
		ExitCode int64 `json:"exitCode"`
	} `json:"terminated"`
}

func (s step) name() string {
	return cmp.Or(s.Name, strings.TrimPrefix(s.Container, "step-"))
}

// errNoTaskRun says no more: the decoder's own error quotes what it read.
var errNoTaskRun = errors.New("the archive holds a TaskRun that cannot be read")

func readTaskRun(raw []byte) (*taskRun, error) {
	var tr taskRun
	err := json.Unmarshal(raw, &tr, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	if err != nil || tr.Metadata.Name == "" || tr.Metadata.UID == "" {
		return nil, errNoTaskRun
	}
	return &tr, nil
}

// failed gives the condition that says that the TaskRun failed; one that timed
// out or was cancelled did too. Without a condition it is unfinished.
func (tr *taskRun) failed() (condition, bool) {
	i := slices.IndexFunc(tr.Status.Conditions, func(c condition) bool { return c.Type == "Succeeded" })
	if i < 0 || tr.Status.Conditions[i].Status != "False" {
		return condition{}, false
	}
	return tr.Status.Conditions[i], true
}

// task is the name that the pipeline has for it.
func (tr *taskRun) task() string {
	return cmp.Or(tr.Metadata.Labels["tekton.dev/pipelineTask"], tr.Spec.TaskRef.Name, tr.Metadata.Name)
}

// failedStep gives the first step that exited non-zero, "" when none did. One
// whose failing its author had declared harmless (onError: continue) is none but
// where there is no other.
func (tr *taskRun) failedStep() string {
	harmless := ""
	for _, s := range tr.Status.Steps {
		switch {
		case s.Terminated == nil || s.Terminated.ExitCode == 0:
		case s.TerminationReason != "Continued":
			return s.name()
		case harmless == "":
			harmless = s.name()
		}
	}
	return harmless
}

func (tr *taskRun) steps() []string {
	var names []string
	for _, s := range tr.Status.Steps {
		names = append(names, s.name())
	}
	return names
}

// byStart puts those that began first first, and those that never began last.
func byStart(a, b *taskRun) int {
	return cmp.Or(a.started().Compare(b.started()), cmp.Compare(a.Metadata.Name, b.Metadata.Name))
}

func (tr *taskRun) started() time.Time {
	t, err := time.Parse(time.RFC3339, tr.Status.StartTime)
	if err != nil {
		return time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	return t
}
