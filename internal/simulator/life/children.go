package life

import (
	"maps"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Labels that Tekton's controllers set.
const (
	LabelPipeline       = "tekton.dev/pipeline"
	LabelPipelineRun    = "tekton.dev/pipelineRun"
	LabelPipelineRunUID = "tekton.dev/pipelineRunUID"
	LabelPipelineTask   = "tekton.dev/pipelineTask"
	LabelMemberOf       = "tekton.dev/memberOf"
	LabelTask           = "tekton.dev/task"
	LabelManagedBy      = "app.kubernetes.io/managed-by"
)

const managedBy = "tekton-pipelines"

// annotationOnError tells the TaskRun's controller that the pipeline lives with its failure.
const annotationOnError = "pipeline.tekton.dev/pipeline-task-on-error"

// child makes the TaskRun of a pipeline task.
func (f *facts) child(n *pipelineNode) *TaskRun {
	known := f.results()
	child := &TaskRun{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: KindTaskRun},
		ObjectMeta: metav1.ObjectMeta{
			Name:            ChildName(f.run.Name, "-"+n.task.Name),
			Namespace:       f.run.Namespace,
			Labels:          f.childLabels(n),
			Annotations:     childAnnotations(f.run, n.task),
			OwnerReferences: []metav1.OwnerReference{owner(f.run)},
		},
		Spec: TaskRunSpec{
			TaskRef:    n.task.TaskRef,
			TaskSpec:   n.task.TaskSpec,
			Params:     known.params(n.task.Params),
			Retries:    n.task.Retries,
			Timeout:    f.childTimeout(n),
			Workspaces: childWorkspaces(f.run, n.task),
		},
	}
	if template := f.run.Spec.TaskRunTemplate; template != nil {
		child.Spec.ServiceAccountName = template.ServiceAccountName
		child.Spec.PodTemplate = template.PodTemplate
	}
	return child
}

// childTimeout is the task's own, else what the run gives to its tasks where that is more than the default.
func (f *facts) childTimeout(n *pipelineNode) *metav1.Duration {
	if n.task.Timeout != nil {
		return n.task.Timeout
	}
	given := f.rules.tasksTimeout(f.run)
	if n.final {
		given = f.rules.finallyTimeout(f.run)
	}
	if given <= bound(f.rules.defaultTimeout()) {
		return nil
	}
	return &metav1.Duration{Duration: given.duration()}
}

func owner(run *PipelineRun) metav1.OwnerReference {
	yes := true
	return metav1.OwnerReference{
		APIVersion: APIVersion, Kind: KindPipelineRun, Name: run.Name, UID: run.UID,
		Controller: &yes, BlockOwnerDeletion: &yes,
	}
}

func (f *facts) childLabels(n *pipelineNode) map[string]string {
	labels := maps.Clone(f.run.Labels)
	if labels == nil {
		labels = map[string]string{}
	}
	labels[LabelManagedBy] = managedBy
	labels[LabelPipeline] = pipelineLabel(f.run)
	labels[LabelPipelineRun] = f.run.Name
	labels[LabelPipelineRunUID] = string(f.run.UID)
	labels[LabelPipelineTask] = n.task.Name
	labels[LabelMemberOf] = "tasks"
	if n.final {
		labels[LabelMemberOf] = "finally"
	}
	if n.task.TaskRef != nil {
		labels[LabelTask] = n.task.TaskRef.Target()
	}
	return labels
}

// pipelineLabel is the pipeline's name, or the run's own when it brings its pipeline along.
func pipelineLabel(run *PipelineRun) string {
	if label := run.Labels[LabelPipeline]; label != "" {
		return label
	}
	if run.Spec.PipelineRef != nil && run.Spec.PipelineRef.Target() != "" {
		return run.Spec.PipelineRef.Target()
	}
	return run.Name
}

// childAnnotations leaves out what belongs to the run's own record and signature.
func childAnnotations(run *PipelineRun, task PipelineTask) map[string]string {
	annotations := maps.Clone(run.Annotations)
	maps.DeleteFunc(annotations, func(key, _ string) bool {
		return strings.HasPrefix(key, "results.tekton.dev/") || strings.HasPrefix(key, "chains.tekton.dev/") ||
			key == corev1.LastAppliedConfigAnnotation
	})
	if task.OnError == OnErrorContinue {
		if annotations == nil {
			annotations = map[string]string{}
		}
		annotations[annotationOnError] = OnErrorContinue
	}
	return annotations
}

// childWorkspaces binds the task's workspaces to what the run binds the pipeline's to.
func childWorkspaces(run *PipelineRun, task PipelineTask) []map[string]any {
	var bound []map[string]any
	for _, want := range task.Workspaces {
		for _, have := range run.Spec.Workspaces {
			if have["name"] == want["workspace"] {
				binding := maps.Clone(have)
				binding["name"] = want["name"]
				bound = append(bound, binding)
			}
		}
	}
	return bound
}

// childReferences lists the created tasks in the pipeline's order.
func (f *facts) childReferences() []ChildReference {
	var refs []ChildReference
	for _, n := range f.nodes {
		if n.run == nil {
			continue
		}
		refs = append(refs, ChildReference{
			TypeMeta:         metav1.TypeMeta{APIVersion: APIVersion, Kind: KindTaskRun},
			Name:             n.run.Name,
			DisplayName:      n.task.DisplayName,
			PipelineTaskName: n.task.Name,
			WhenExpressions:  f.results().when(n.task.When),
		})
	}
	return refs
}

func (f *facts) skippedTasks() []SkippedTask {
	var skipped []SkippedTask
	for _, n := range f.nodes {
		reason := f.skipReason(n)
		if reason == "" {
			continue
		}
		task := SkippedTask{Name: n.task.Name, Reason: reason}
		if !n.final || reason == skipWhen {
			task.WhenExpressions = f.results().when(n.task.When)
		}
		skipped = append(skipped, task)
	}
	return skipped
}

// pipelineResults is what the pipeline hands on, as far as its tasks have handed it on.
func (f *facts) pipelineResults() []Result {
	known := f.results()
	var results []Result
	for _, declared := range f.run.Status.PipelineSpec.Results {
		value := known.value(declared.Value)
		if len(resultTasks(value)) == 0 {
			results = append(results, Result{Name: declared.Name, Value: value})
		}
	}
	return results
}
