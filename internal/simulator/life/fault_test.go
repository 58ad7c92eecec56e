package life_test

import (
	"strings"
	"testing"

	"hangar.io/glidepath/internal/simulator/life"
)

func TestAPipelineThatCannotRunEndsBeforeItsTasks(t *testing.T) {
	t.Parallel()
	inline := func(tasks ...life.PipelineTask) *life.PipelineSpec { return &life.PipelineSpec{Tasks: tasks} }
	named := func(name string, after ...string) life.PipelineTask {
		return life.PipelineTask{Name: name, RunAfter: after, TaskRef: life.ClusterRef("task", "lint")}
	}
	for name, tt := range map[string]struct {
		ref             *life.Ref
		spec            *life.PipelineSpec
		reason, message string
	}{
		"a reference that leads nowhere": {
			ref: life.ClusterRef("pipeline", "gone"), reason: "CouldntGetPipeline",
			message: `Error retrieving pipeline for pipelinerun app-shop-cicd/build-x7k2p: pipelines.tekton.dev "gone" not found`,
		},
		"no pipeline at all": {reason: "CouldntGetPipeline", message: "Error retrieving pipeline"},
		"a task that does not exist": {
			spec:   inline(life.PipelineTask{Name: "a", TaskRef: &life.Ref{Name: "gone"}}),
			reason: "CouldntGetTask", message: `Couldn't retrieve Task "a"`,
		},
		"a task without any reference": {spec: inline(life.PipelineTask{Name: "a"}), reason: "CouldntGetTask"},
		"a cycle":                      {spec: inline(named("a", "b"), named("b", "a")), reason: "PipelineInvalidGraph", message: "cycle"},
		"a parent that is not there":   {spec: inline(named("a", "z")), reason: "PipelineInvalidGraph", message: "z wasn't present"},
		"two tasks of one name":        {spec: inline(named("a"), named("a")), reason: "PipelineInvalidGraph", message: "duplicate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := asked(life.PipelineBuild, life.Fate{})
			run.Spec.PipelineRef, run.Spec.PipelineSpec = tt.ref, tt.spec
			h := live(t, rules(), run)
			end := run.Status.Conditions.Succeeded()
			if end.Reason != tt.reason || !strings.Contains(end.Message, tt.message) {
				t.Errorf("ended as %q with %q", end.Reason, end.Message)
			}
			if len(h.world.TaskRuns) != 0 || len(run.Status.ChildReferences) != 0 {
				t.Error("tasks were created")
			}
		})
	}
}

func TestResultsOrderTasksAndAMissingOneSkips(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{})
	run.Spec.PipelineRef = nil
	use := life.PipelineTask{
		Name: "use", TaskRef: life.ClusterRef("task", "lint"),
		Params: []life.Param{{Name: "list", Value: []any{"$(tasks.make.results.commit)", map[string]any{"a": "$(params.env)"}}}},
	}
	missing := life.PipelineTask{
		Name: "missing", TaskRef: life.ClusterRef("task", "lint"),
		When: []life.When{{Input: "$(tasks.make.results.nothing)", Operator: "notin", Values: []string{"x"}}},
	}
	after := life.PipelineTask{Name: "after", TaskRef: life.ClusterRef("task", "lint"), RunAfter: []string{"missing"}}
	run.Spec.PipelineSpec = &life.PipelineSpec{
		Params: []life.ParamSpec{{Name: "env", Default: "dev"}},
		Tasks:  []life.PipelineTask{use, missing, after, {Name: "make", TaskRef: life.ClusterRef("task", "git-clone")}},
	}
	h := live(t, rules(), run)
	h.wantSkipped(map[string]string{"missing": "Results were missing", "after": "Parent Tasks were skipped"})
	commit := h.taskRun("make").Status.Results[0].Value
	given, ok := h.taskRun("use").Spec.Params[0].Value.([]any)
	if !ok || given[0] != commit {
		t.Errorf("use was given %v, want %v in front", given, commit)
	}
	if object, ok := given[1].(map[string]any); !ok || object["a"] != "dev" {
		t.Errorf("use was given %v, want the default of env", given[1])
	}
}
