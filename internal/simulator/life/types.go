package life

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// APIVersion of every object in this package.
const APIVersion = "tekton.dev/v1"

// Kinds of object.
const (
	KindPipelineRun = "PipelineRun"
	KindTaskRun     = "TaskRun"
)

// PipelineRun is the part of Tekton's PipelineRun that its life depends on. Fields of the spec that are not here are
// not written by this package; the status is written whole.
type PipelineRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              PipelineRunSpec   `json:"spec"`
	Status            PipelineRunStatus `json:"status,omitzero"`
}

// PipelineRunSpec is what somebody asked for.
type PipelineRunSpec struct {
	PipelineRef     *Ref             `json:"pipelineRef,omitempty"`
	PipelineSpec    *PipelineSpec    `json:"pipelineSpec,omitempty"`
	Params          []Param          `json:"params,omitempty"`
	Status          string           `json:"status,omitempty"`
	Timeouts        *Timeouts        `json:"timeouts,omitempty"`
	TaskRunTemplate *TaskRunTemplate `json:"taskRunTemplate,omitempty"`
	Workspaces      []map[string]any `json:"workspaces,omitempty"`
}

// TaskRunTemplate holds for every TaskRun of a run.
type TaskRunTemplate struct {
	ServiceAccountName string         `json:"serviceAccountName,omitempty"`
	PodTemplate        map[string]any `json:"podTemplate,omitempty"`
}

// Timeouts bound a run; zero is no bound, absent is Tekton's default.
type Timeouts struct {
	Pipeline *metav1.Duration `json:"pipeline,omitempty"`
	Tasks    *metav1.Duration `json:"tasks,omitempty"`
	Finally  *metav1.Duration `json:"finally,omitempty"`
}

// PipelineRunStatus is what the controller says.
type PipelineRunStatus struct {
	Conditions       Conditions       `json:"conditions,omitempty"`
	StartTime        *metav1.Time     `json:"startTime,omitempty"`
	CompletionTime   *metav1.Time     `json:"completionTime,omitempty"`
	FinallyStartTime *metav1.Time     `json:"finallyStartTime,omitempty"`
	PipelineSpec     *PipelineSpec    `json:"pipelineSpec,omitempty"`
	ChildReferences  []ChildReference `json:"childReferences,omitempty"`
	SkippedTasks     []SkippedTask    `json:"skippedTasks,omitempty"`
	Results          []Result         `json:"results,omitempty"`
}

// ChildReference names a TaskRun that was created.
type ChildReference struct {
	metav1.TypeMeta  `json:",inline"`
	Name             string `json:"name"`
	DisplayName      string `json:"displayName,omitempty"`
	PipelineTaskName string `json:"pipelineTaskName"`
	WhenExpressions  []When `json:"whenExpressions,omitempty"`
}

// SkippedTask names a pipeline task that will not be created, and why.
type SkippedTask struct {
	Name            string `json:"name"`
	Reason          string `json:"reason"`
	WhenExpressions []When `json:"whenExpressions,omitempty"`
}

// TaskRun is the part of Tekton's TaskRun that its life depends on.
type TaskRun struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata"`
	Spec              TaskRunSpec   `json:"spec"`
	Status            TaskRunStatus `json:"status,omitzero"`
}

// TaskRunSpec is what the PipelineRun, or somebody, asked for.
type TaskRunSpec struct {
	TaskRef            *Ref             `json:"taskRef,omitempty"`
	TaskSpec           *TaskSpec        `json:"taskSpec,omitempty"`
	Params             []Param          `json:"params,omitempty"`
	Retries            int              `json:"retries,omitempty"`
	ServiceAccountName string           `json:"serviceAccountName,omitempty"`
	PodTemplate        map[string]any   `json:"podTemplate,omitempty"`
	Status             string           `json:"status,omitempty"`
	StatusMessage      string           `json:"statusMessage,omitempty"`
	Timeout            *metav1.Duration `json:"timeout,omitempty"`
	Workspaces         []map[string]any `json:"workspaces,omitempty"`
}

// TaskRunStatus is what the controller says of the current attempt; earlier ones are in RetriesStatus.
type TaskRunStatus struct {
	Conditions     Conditions      `json:"conditions,omitempty"`
	PodName        string          `json:"podName"`
	StartTime      *metav1.Time    `json:"startTime,omitempty"`
	CompletionTime *metav1.Time    `json:"completionTime,omitempty"`
	Steps          []StepState     `json:"steps,omitempty"`
	Results        []Result        `json:"results,omitempty"`
	TaskSpec       *TaskSpec       `json:"taskSpec,omitempty"`
	RetriesStatus  []TaskRunStatus `json:"retriesStatus,omitempty"`
}

// StepState is a step's container: at most one of waiting, running and terminated.
type StepState struct {
	corev1.ContainerState `json:",inline"`
	Name                  string `json:"name"`
	Container             string `json:"container"`
	ImageID               string `json:"imageID,omitempty"`
	TerminationReason     string `json:"terminationReason,omitempty"`
}

// Result is a value that a task or a pipeline hands on: text, a list or an object of texts.
type Result struct {
	Name  string `json:"name"`
	Type  string `json:"type,omitempty"`
	Value any    `json:"value"`
}
