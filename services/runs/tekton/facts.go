package tekton

import (
	"cmp"
	"strings"
)

// Facts are what a run says of what it was for. An empty field is unknown.
type Facts struct {
	Pipeline, Flow, Revision, Branch, Initiator string
}

// Facts reads what the run's own labels, annotations and parameters say: those
// of the platform, under its name and its former one, and those of
// Pipelines-as-Code.
func (o *Object) Facts() Facts {
	m := o.Metadata
	return Facts{
		Pipeline:  o.pipeline(),
		Flow:      cmp.Or(m.Labels["hangar.io/flow"], m.Labels["platform.io/flow"]),
		Revision:  cmp.Or(m.pac("sha"), o.param("revision"), o.param("git-revision")),
		Branch:    strings.TrimPrefix(m.pac("branch"), "refs/heads/"),
		Initiator: cmp.Or(m.Annotations["hangar.io/initiator"], m.Annotations["platform.io/initiator"], m.pac("sender")),
	}
}

// pac gives what Pipelines-as-Code noted: whole in an annotation, and in a
// label, which takes fewer characters, with others in the place of some.
func (m Metadata) pac(name string) string {
	key := "pipelinesascode.tekton.dev/" + name
	return cmp.Or(m.Annotations[key], m.Labels[key])
}

// pipeline names the Pipeline that was run. The label names the run itself
// where that brought its own.
func (o *Object) pipeline() string {
	if o.Spec.Pipeline.Name != "" {
		return o.Spec.Pipeline.Name
	}
	if label := o.Metadata.Labels["tekton.dev/pipeline"]; label != o.Metadata.Name {
		return label
	}
	return ""
}

const taskLabel = "tekton.dev/pipelineTask"

// Task is the name that the pipeline has for a TaskRun, or else the Task's, or its
// own.
func (o *Object) Task() string {
	return cmp.Or(o.Metadata.Labels[taskLabel], o.Spec.Task.Name, o.Metadata.Name)
}

func (o *Object) param(name string) string {
	for _, p := range o.Spec.Params {
		if p.Name == name {
			return p.Text()
		}
	}
	return ""
}
