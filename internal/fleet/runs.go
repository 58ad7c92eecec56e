package fleet

import (
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"hangar.io/glidepath/internal/simulator/life"
)

// sampleRun is a run that is there from the beginning.
type sampleRun struct {
	life.Sample
	// until names the pipeline task in the middle of which the run stands; empty: it is lived to its end.
	until string
}

// sampleRuns has a run in every state a viewer should see at once, at least one in every app, and one in a namespace
// that is no app's. Those that are under way stay so until a simulator, or nobody, takes them further.
func sampleRuns() []sampleRun {
	in := func(app, name, pipeline string, fate life.Fate) life.Sample {
		namespace := NamespaceOf(app)
		return life.Sample{Namespace: namespace, Name: name, App: app, Pipeline: pipeline, Fate: fate}
	}
	late := in(AppSkyMarshall, "build-t8m4z", life.PipelineBuild, life.Fate{Outcome: life.Hang, Task: "compile"})
	late.Timeouts = &life.Timeouts{Pipeline: &metav1.Duration{Duration: 40 * time.Second}}
	waiting := in(AppBoardingAPI, "deploy-w2q6v", life.PipelineDeploy, life.Fate{Outcome: life.Unpend})
	waiting.Status = life.SpecPending
	skipping := in(AppShop, "deploy-c5j7n", life.PipelineDeploy, life.Fate{})
	skipping.Env = "dev"
	elsewhere := in(UnrelatedNamespace, "build-r9d4s", life.PipelineBuild, life.Fate{})
	elsewhere.App = ""
	return []sampleRun{
		{Sample: in(AppGateAPI, "image-h2v8n", life.PipelineImage, life.Fate{})},
		{Sample: in(AppGateAPI, "test-k4x9m", life.PipelineTest, life.Fate{Outcome: life.Flaky, Task: "unit"})},
		{Sample: in(AppGateAPI, "test-p6b2w", life.PipelineTest, life.Fate{}), until: "unit"},
		{Sample: in(AppShop, "build-f7c5q", life.PipelineBuild, life.Fate{Outcome: life.Fail, Task: "compile"})},
		{Sample: skipping},
		{Sample: in(AppShop, "image-g4t2x", life.PipelineImage, life.Fate{}), until: "image"},
		{Sample: in(AppBoardingAPI, "test-z8n5d", life.PipelineTest, life.Fate{Outcome: life.CancelFn, Task: "unit"})},
		{Sample: waiting},
		{Sample: late},
		{Sample: in(InfraPostgres, "deploy-m6v9b", life.PipelineDeploy, life.Fate{})},
		{Sample: in(InfraPostgres, "build-j2w7k", life.PipelineBuild, life.Fate{Outcome: life.Cancel, Task: "compile"})},
		{Sample: elsewhere},
	}
}

// NamespaceOf is the namespace of an app of the fleet, and the name itself when it is none.
func NamespaceOf(app string) string {
	for _, namespace := range AppNamespaces() {
		if life.AppOf(namespace) == app {
			return namespace
		}
	}
	return app
}

// lived is the run as it stands after a life that took its time and was over at the end; the cluster dates the creation of
// the objects itself, so that they are younger than their life.
func (s sampleRun) lived(object *unstructured.Unstructured, end time.Time) (*life.World, error) {
	_, took, err := s.live(object, end)
	if err != nil {
		return nil, err
	}
	world, _, err := s.live(object, end.Add(-took))
	return world, err
}

// live lives the run from its start as far as it is to go, and says how long that took.
func (s sampleRun) live(object *unstructured.Unstructured, start time.Time) (*life.World, time.Duration, error) {
	run := &life.PipelineRun{}
	if err := life.Decode(object, run); err != nil {
		return nil, 0, err
	}
	world := &life.World{Rules: life.Rules{Catalog: life.SampleCatalog(), Pace: 1}, Run: run}
	end, err := world.Play(start, func() bool {
		return s.Status != "" && run.Status.Conditions.Succeeded().Reason == life.ReasonPipelineRunPending ||
			slices.ContainsFunc(world.TaskRuns, func(task *life.TaskRun) bool {
				return task.Labels[life.LabelPipelineTask] == s.until &&
					task.Status.Conditions.Succeeded().Reason == life.ReasonRunning
			})
	})
	return world, end.Sub(start), err
}
