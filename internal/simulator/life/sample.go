package life

import (
	"crypto/sha1" //nolint:gosec // what a commit's name looks like; nothing is protected by it
	"encoding/hex"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// LabelApp, LabelFlow and AnnotationInitiator say whose run it is, which flow of the app's, and who started it.
const (
	LabelApp            = "hangar.io/app"
	LabelFlow           = "hangar.io/flow"
	AnnotationInitiator = "hangar.io/initiator"
)

// Sample is a PipelineRun to be asked for.
type Sample struct {
	Namespace, Name string
	// App the run is for; empty is none.
	App string
	// Pipeline of the catalog.
	Pipeline string
	// Env is where a deployment goes; empty leaves it to the pipeline.
	Env      string
	Fate     Fate
	Timeouts *Timeouts
	// Status is a word for spec.status, SpecPending or nothing.
	Status string
}

// PipelineRun is the object as somebody creates it.
func (s Sample) PipelineRun() *PipelineRun {
	commit := sha1.Sum([]byte(s.Namespace + "/" + s.Name)) //nolint:gosec // see the import
	revision := hex.EncodeToString(commit[:])
	run := &PipelineRun{
		TypeMeta: metav1.TypeMeta{APIVersion: APIVersion, Kind: KindPipelineRun},
		ObjectMeta: metav1.ObjectMeta{
			Name:      s.Name,
			Namespace: s.Namespace,
			Labels: map[string]string{
				LabelFlow: "ci-" + s.Pipeline, "pipelinesascode.tekton.dev/sha": revision,
			},
			Annotations: map[string]string{
				FateAnnotation: s.Fate.String(), AnnotationInitiator: "user:default/ada",
				"pipelinesascode.tekton.dev/branch": "main",
			},
		},
		Spec: PipelineRunSpec{
			PipelineRef:     ClusterRef("pipeline", s.Pipeline),
			Params:          []Param{{Name: "revision", Value: revision}},
			Status:          s.Status,
			Timeouts:        s.Timeouts,
			TaskRunTemplate: &TaskRunTemplate{ServiceAccountName: "pipeline-runner"},
			Workspaces:      []map[string]any{{"name": "source", "emptyDir": map[string]any{}}},
		},
	}
	if s.App != "" {
		run.Labels[LabelApp] = s.App
		run.Labels["pipelinesascode.tekton.dev/repository"] = s.App
	}
	if s.Env != "" {
		run.Spec.Params = append(run.Spec.Params, Param{Name: "env", Value: s.Env})
	}
	return run
}

// AppOf is the app whose runs are in the namespace, app-<app>-cicd or infra-<app>-cicd, and empty for any other.
func AppOf(namespace string) string {
	name, cicd := strings.CutSuffix(namespace, "-cicd")
	for _, prefix := range []string{"app-", "infra-"} {
		if app, ok := strings.CutPrefix(name, prefix); ok && cicd {
			return app
		}
	}
	return ""
}
