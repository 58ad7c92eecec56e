package life

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Ref names a Pipeline or a Task: by name, or through a resolver and its parameters.
type Ref struct {
	Kind     string  `json:"kind,omitempty"`
	Name     string  `json:"name,omitempty"`
	Resolver string  `json:"resolver,omitempty"`
	Params   []Param `json:"params,omitempty"`
}

// Target is the name that the reference leads to.
func (r *Ref) Target() string {
	if r.Name != "" {
		return r.Name
	}
	for _, p := range r.Params {
		if name, ok := p.Value.(string); ok && p.Name == "name" {
			return name
		}
	}
	return ""
}

// Param is a value under a name: text, a list or an object of texts.
type Param struct {
	Name  string `json:"name"`
	Value any    `json:"value"`
}

// ParamSpec declares a parameter.
type ParamSpec struct {
	Name    string `json:"name"`
	Type    string `json:"type,omitempty"`
	Default any    `json:"default,omitempty"`
}

// PipelineSpec is a pipeline: a graph of tasks, then the finally tasks.
type PipelineSpec struct {
	Params     []ParamSpec      `json:"params,omitempty"`
	Tasks      []PipelineTask   `json:"tasks,omitempty"`
	Finally    []PipelineTask   `json:"finally,omitempty"`
	Workspaces []map[string]any `json:"workspaces,omitempty"`
	Results    []ResultSpec     `json:"results,omitempty"`
}

// ResultSpec declares a result; a pipeline's has a Value that refers to a task's.
type ResultSpec struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	Value any    `json:"value,omitempty"`
}

// PipelineTask is one node of a pipeline.
type PipelineTask struct {
	Name        string              `json:"name"`
	DisplayName string              `json:"displayName,omitempty"`
	RunAfter    []string            `json:"runAfter,omitempty"`
	When        []When              `json:"when,omitempty"`
	Params      []Param             `json:"params,omitempty"`
	Retries     int                 `json:"retries,omitempty"`
	Timeout     *metav1.Duration    `json:"timeout,omitempty"`
	OnError     string              `json:"onError,omitempty"`
	TaskRef     *Ref                `json:"taskRef,omitempty"`
	TaskSpec    *TaskSpec           `json:"taskSpec,omitempty"`
	Workspaces  []map[string]string `json:"workspaces,omitempty"`
}

// When lets a task run only if the input is in the values, or is not.
type When struct {
	Input    string   `json:"input,omitempty"`
	Operator string   `json:"operator,omitempty"`
	Values   []string `json:"values,omitempty"`
	CEL      string   `json:"cel,omitempty"`
}

// TaskSpec is a task: steps one after another.
type TaskSpec struct {
	Params     []ParamSpec      `json:"params,omitempty"`
	Steps      []Step           `json:"steps,omitempty"`
	Results    []ResultSpec     `json:"results,omitempty"`
	Workspaces []map[string]any `json:"workspaces,omitempty"`
}

// Step is one container of a task.
type Step struct {
	Name    string   `json:"name,omitempty"`
	Image   string   `json:"image,omitempty"`
	Script  string   `json:"script,omitempty"`
	Command []string `json:"command,omitempty"`
	Args    []string `json:"args,omitempty"`
	OnError string   `json:"onError,omitempty"`
}

// OnErrorContinue lets a step's, or a pipeline task's, failure pass.
const OnErrorContinue = "continue"
