package life

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Catalog holds the pipelines and tasks that a cluster resolver finds.
type Catalog struct {
	Pipelines map[string]PipelineSpec
	Tasks     map[string]TaskSpec
}

// CatalogNamespace is where the references of SampleCatalog say that they look.
const CatalogNamespace = "platform-catalog"

// Names of the sample pipelines.
const (
	PipelineBuild  = "build"
	PipelineTest   = "test"
	PipelineImage  = "image"
	PipelineDeploy = "deploy"
	// Those that a promotion and a rollback start.
	PipelinePromote  = "promote-release"
	PipelineRollback = "rollback-release"
)

// ClusterRef is a reference that the cluster resolver follows into CatalogNamespace. Kind is pipeline or task.
func ClusterRef(kind, name string) *Ref {
	return &Ref{Resolver: "cluster", Params: []Param{
		{Name: "kind", Value: kind},
		{Name: "name", Value: name},
		{Name: "namespace", Value: CatalogNamespace},
	}}
}

// SampleCatalog is what an app's pipelines look like: what builds and deploys it and what releases it, each with a finally task that tells people.
func SampleCatalog() Catalog {
	return Catalog{
		Pipelines: map[string]PipelineSpec{
			PipelineBuild:    buildPipeline(),
			PipelineTest:     testPipeline(),
			PipelineImage:    imagePipeline(),
			PipelineDeploy:   deployPipeline(),
			PipelinePromote:  releasePipeline(),
			PipelineRollback: releasePipeline("config-revision", "rollback-of", "rollback-reason"),
		},
		Tasks: map[string]TaskSpec{
			"git-clone":       task([]string{"commit"}, "clone"),
			"compile":         task(nil, "restore", "compile"),
			"lint":            task(nil, "lint"),
			"unit-test":       unitTask(),
			"report":          task(nil, "publish"),
			"build-image":     task([]string{"IMAGE_URL", "IMAGE_DIGEST"}, "build", "push"),
			"sign":            task(nil, "sign"),
			"preflight":       task([]string{"chain-id"}, "check"),
			"deploy":          task(nil, "render", "apply"),
			"verify":          task(nil, "probe"),
			"gates":           task(nil, "provenance", "policy"),
			"open-release-pr": task([]string{"chain-id", "pull-request"}, "render", "open", "record"),
			"notify":          task(nil, "notify"),
		},
	}
}

func buildPipeline() PipelineSpec {
	return pipeline(
		node("clone", "git-clone"),
		node("compile", "compile", "clone"),
		node("report", "report", "compile"),
	)
}

func testPipeline() PipelineSpec {
	unit := node("unit", "unit-test", "clone")
	unit.DisplayName = "Unit tests"
	unit.Retries = 1
	return pipeline(
		node("clone", "git-clone"),
		node("lint", "lint", "clone"),
		unit,
		node("report", "report", "lint", "unit"),
	)
}

func imagePipeline() PipelineSpec {
	sign := node("sign", "sign", "image")
	sign.Params = []Param{{Name: "digest", Value: "$(tasks.image.results.IMAGE_DIGEST)"}}
	spec := pipeline(
		node("clone", "git-clone"),
		node("image", "build-image", "clone"),
		sign,
	)
	spec.Results = []ResultSpec{
		{Name: "IMAGE_URL", Value: "$(tasks.image.results.IMAGE_URL)"},
		{Name: "IMAGE_DIGEST", Value: "$(tasks.image.results.IMAGE_DIGEST)"},
	}
	return spec
}

func deployPipeline() PipelineSpec {
	deploy := node("deploy", "deploy", "preflight")
	deploy.Timeout = &metav1.Duration{Duration: 40 * time.Second}
	verify := node("verify", "verify", "deploy")
	verify.When = []When{{Input: "$(params.env)", Operator: "in", Values: []string{"staging", "prod"}}}
	spec := pipeline(node("preflight", "preflight"), deploy, verify)
	spec.Params = append(spec.Params, ParamSpec{Name: "env", Type: "string", Default: "staging"})
	return spec
}

// releasePipeline checks what is to be released, then opens the pull request that releases it.
func releasePipeline(params ...string) PipelineSpec {
	spec := pipeline(node("gates", "gates"), node("open-release-pr", "open-release-pr", "gates"))
	spec.Params = nil
	for _, name := range append([]string{"env", "cluster", "git-url", "git-revision", "image-ref", "initiator"}, params...) {
		spec.Params = append(spec.Params, ParamSpec{Name: name, Type: "string", Default: ""})
	}
	spec.Results = []ResultSpec{{Name: "pull-request", Value: "$(tasks.open-release-pr.results.pull-request)"}}
	return spec
}

func pipeline(tasks ...PipelineTask) PipelineSpec {
	return PipelineSpec{
		Params:     []ParamSpec{{Name: "revision", Type: "string", Default: "main"}},
		Tasks:      tasks,
		Finally:    []PipelineTask{node("notify", "notify")},
		Workspaces: []map[string]any{{"name": "source"}},
	}
}

func node(name, task string, after ...string) PipelineTask {
	return PipelineTask{
		Name:       name,
		TaskRef:    ClusterRef("task", task),
		RunAfter:   after,
		Workspaces: []map[string]string{{"name": "source", "workspace": "source"}},
	}
}

func task(results []string, steps ...string) TaskSpec {
	spec := TaskSpec{Workspaces: []map[string]any{{"name": "source"}}}
	for _, name := range results {
		spec.Results = append(spec.Results, ResultSpec{Name: name, Type: "string"})
	}
	for _, name := range steps {
		spec.Steps = append(spec.Steps, Step{
			Name:   name,
			Image:  "registry.example/ci/" + name + ":1",
			Script: "#!/bin/sh\nset -eu\nexec " + name + "\n",
		})
	}
	return spec
}

// unitTask has a first step whose failure the task lives with.
func unitTask() TaskSpec {
	spec := task(nil, "vet", "unit-tests")
	spec.Steps[0].OnError = OnErrorContinue
	return spec
}
