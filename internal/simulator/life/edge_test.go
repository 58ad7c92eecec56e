package life_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/simulator/life"
)

func inline(run *life.PipelineRun, change func(*life.PipelineSpec), pipeline string) *life.PipelineRun {
	spec := life.SampleCatalog().Pipelines[pipeline]
	change(&spec)
	run.Spec.PipelineRef, run.Spec.PipelineSpec = nil, &spec
	return run
}

func TestATaskWhoseTimeHasNotComeInTimeIsSkipped(t *testing.T) {
	t.Parallel()
	half := &metav1.Duration{Duration: 500 * time.Millisecond} // less than it takes to find the pipeline
	t.Run("with the whole run out of time nothing is created", func(t *testing.T) {
		t.Parallel()
		run := asked(life.PipelineBuild, life.Fate{})
		run.Spec.Timeouts = &life.Timeouts{Pipeline: half}
		h := live(t, rules(), run)
		h.wantRun("Started", "ResolvingPipelineRef", "PipelineRunTimeout")
		h.wantSkipped(map[string]string{
			"clone": "PipelineRun timeout has been reached", "compile": "Parent Tasks were skipped", "report": "Parent Tasks were skipped",
			"notify": "PipelineRun timeout has been reached",
		})
		if len(h.world.TaskRuns) != 0 {
			t.Errorf("%d TaskRuns were created", len(h.world.TaskRuns))
		}
	})
	t.Run("with the tasks out of time only finally runs", func(t *testing.T) {
		t.Parallel()
		run := asked(life.PipelineBuild, life.Fate{})
		run.Spec.Timeouts = &life.Timeouts{Tasks: half}
		h := live(t, rules(), run)
		h.wantRun("Started", "ResolvingPipelineRef", "PipelineRunTimeoutRunningFinally", "PipelineRunTimeout")
		h.wantSkipped(map[string]string{
			"clone": "PipelineRun Tasks timeout has been reached", "compile": "Parent Tasks were skipped", "report": "Parent Tasks were skipped",
		})
		h.wantTask("notify", "Started", "Pending", "Running", "Succeeded")
	})
}

func TestAFinallyTaskThatWasNeverCreatedInTimeIsSkippedAndFailsTheRun(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{})
	run.Spec.Timeouts = &life.Timeouts{Finally: seconds(20)}
	world := &life.World{Rules: rules(), Run: run}
	now, err := world.Play(epoch, func() bool { return run.Status.FinallyStartTime != nil })
	if err != nil {
		t.Fatal(err)
	}
	// As if the controller had stopped between writing when finally began and creating its task.
	world.TaskRuns = world.TaskRuns[:3]
	run.Status.ChildReferences = run.Status.ChildReferences[:3]
	if _, err := world.Play(now.Add(time.Minute), func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	h := history{t: t, world: world}
	h.wantSkipped(map[string]string{"notify": "PipelineRun Finally timeout has been reached"})
	h.wantMessage("Tasks Completed: 3 (Failed: 0, Cancelled 0), Skipped: 1")
	if got := run.Status.Conditions.Succeeded().Reason; got != "Failed" {
		t.Errorf("the run is %q", got)
	}
}

func TestATaskAfterOneThatItsWhenSkippedStillRuns(t *testing.T) {
	t.Parallel()
	run := inline(asked(life.PipelineBuild, life.Fate{}), func(spec *life.PipelineSpec) {
		spec.Tasks[1].When = []life.When{{Input: "a", Operator: "notin", Values: []string{"a"}}}
	}, life.PipelineBuild)
	h := live(t, rules(), run)
	h.wantSkipped(map[string]string{"compile": "When Expressions evaluated to false"})
	h.wantTask("report", "Started", "Pending", "Running", "Succeeded")
}

func TestAFinallyTaskWithoutTheResultsItNeedsIsSkipped(t *testing.T) {
	t.Parallel()
	run := inline(asked(life.PipelineBuild, life.Fate{Outcome: life.Fail, Task: "clone"}), func(spec *life.PipelineSpec) {
		spec.Finally[0].Params = []life.Param{{Name: "commit", Value: "$(tasks.clone.results.commit)"}}
	}, life.PipelineBuild)
	h := live(t, rules(), run)
	h.wantSkipped(map[string]string{
		"compile": "PipelineRun was stopping", "report": "PipelineRun was stopping", "notify": "Results were missing",
	})
	h.wantRun("Started", "Running", "Failed")
}

func TestAPipelineHandsOnOnlyWhatItsTasksHave(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineImage, life.Fate{Outcome: life.Fail, Task: "image"}))
	if results := h.world.Run.Status.Results; len(results) != 0 {
		t.Errorf("the run hands on %v", results)
	}
}

func TestATaskRunThatGetsLostIsMadeAgain(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{})
	world := &life.World{Rules: rules(), Run: run}
	now, err := world.Play(epoch, func() bool { return len(world.TaskRuns) == 2 })
	if err != nil {
		t.Fatal(err)
	}
	lost := world.TaskRuns[1].Name
	world.TaskRuns = world.TaskRuns[:1]
	if changed, _ := world.Step(now); !changed || len(world.TaskRuns) != 2 || world.TaskRuns[1].Name != lost {
		t.Fatalf("after the loss of %s there are %d TaskRuns", lost, len(world.TaskRuns))
	}
	if len(run.Status.ChildReferences) != 2 || len(run.Status.SkippedTasks) != 0 {
		t.Errorf("the run refers to %v and skips %v", run.Status.ChildReferences, run.Status.SkippedTasks)
	}
	if _, err := world.Play(now, func() bool { return false }); err != nil || run.Status.Conditions.Succeeded().Reason != "Succeeded" {
		t.Errorf("the run ends as %q, %v", run.Status.Conditions.Succeeded().Reason, err)
	}
}

func TestAChildGetsARunsTimeoutOnlyWhenItIsMoreThanTheDefault(t *testing.T) {
	t.Parallel()
	hours := func(n int) *metav1.Duration { return &metav1.Duration{Duration: time.Duration(n) * time.Hour} }
	for name, tt := range map[string]struct {
		timeouts      *life.Timeouts
		task, finally *metav1.Duration
	}{
		"none is given":               {nil, nil, nil},
		"both are more":               {&life.Timeouts{Pipeline: hours(5), Tasks: hours(2)}, hours(2), hours(3)},
		"only the tasks' is more":     {&life.Timeouts{Tasks: hours(2), Finally: hours(1)}, hours(2), nil},
		"only the finally's is more":  {&life.Timeouts{Tasks: seconds(600), Finally: hours(2)}, nil, hours(2)},
		"what is left is for finally": {&life.Timeouts{Pipeline: hours(4), Finally: hours(1)}, hours(3), nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := asked(life.PipelineBuild, life.Fate{})
			run.Spec.Timeouts = tt.timeouts
			h := live(t, rules(), run)
			for task, want := range map[string]*metav1.Duration{"compile": tt.task, "notify": tt.finally} {
				got := h.taskRun(task).Spec.Timeout
				if (got == nil) != (want == nil) || got != nil && *got != *want {
					t.Errorf("%s has timeout %v, want %v", task, got, want)
				}
			}
		})
	}
}

func TestPaceStretchesTheCatalogsTimeoutsEachTimeAnew(t *testing.T) {
	t.Parallel()
	r := rules()
	r.Pace = 0.5
	for range 2 {
		h := live(t, r, asked(life.PipelineDeploy, life.Fate{}))
		if got := h.taskRun("deploy").Spec.Timeout; got == nil || got.Duration != 20*time.Second {
			t.Errorf("deploy has timeout %v, want half of 40 s", got)
		}
	}
}

func TestTheTransitionTimeMovesOnlyWithTheCondition(t *testing.T) {
	t.Parallel()
	times, conditions := map[string]bool{}, map[string]bool{}
	live(t, rules(), asked(life.PipelineBuild, life.Fate{}), func(w *life.World) {
		c := w.Run.Status.Conditions.Succeeded()
		times[c.LastTransitionTime.String()+c.Reason+c.Message] = true
		conditions[c.Reason+c.Message] = true
	})
	if len(times) != len(conditions) {
		t.Errorf("%d conditions had %d transition times", len(conditions), len(times))
	}
}

func TestNothingIsDueInThePast(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{Outcome: life.Hang, Task: "compile"})
	run.Spec.Timeouts = &life.Timeouts{Tasks: seconds(60)}
	world := &life.World{Rules: rules(), Run: run}
	now, err := world.Play(epoch, func() bool {
		return slices.ContainsFunc(world.TaskRuns, func(task *life.TaskRun) bool { return task.Spec.Status != "" })
	})
	if err != nil {
		t.Fatal(err)
	}
	// The late task has been told and has not ended yet: there is nothing to do about the run but to wait.
	moves := world.Rules.MovePipelineRun(run, world.TaskRuns, now)
	if moves.Changed || len(moves.Create)+len(moves.Cancel) != 0 || !moves.Next.IsZero() && !moves.Next.After(now) {
		t.Errorf("at %v the moves are %+v", now, moves)
	}
}

func TestNobodyLetsARunStartThatNoControllerHasSeen(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{Outcome: life.Unpend})
	run.Spec.Status = life.SpecPending
	if _, act, next := rules().Person(run, nil, epoch.Add(time.Hour)); act || !next.IsZero() {
		t.Errorf("somebody acts: %t, at %v", act, next)
	}
}

func TestACancelBetweenAttemptsSaysWhatWasBefore(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineTest, life.Fate{Outcome: life.Fail, Task: "unit"}), func(w *life.World) {
		for _, task := range w.TaskRuns {
			if task.Status.Conditions.Succeeded().Reason == "ToBeRetried" {
				task.Spec.Status = life.SpecTaskRunCancelled
			}
		}
	})
	h.wantTask("unit", "Started", "Pending", "Running", "ToBeRetried", "TaskRunCancelled")
	if got := h.taskRun("unit").Status.Conditions.Succeeded().Message; !strings.HasSuffix(got,
		"\n"+`Previous status: [ToBeRetried] "step-unit-tests" exited with code 1: Error`) {
		t.Errorf("got message %q", got)
	}
}

func TestACancelLeavesFinishedTasksAlone(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineBuild, life.Fate{Outcome: life.Cancel, Task: "compile"}))
	if clone, compile := h.taskRun("clone").Spec, h.taskRun("compile").Spec; clone.Status != "" || compile.Status != "TaskRunCancelled" {
		t.Errorf("clone is asked to be %q, compile %q", clone.Status, compile.Status)
	}
}

func TestEveryAttemptMayBeTheLastByItsTimeout(t *testing.T) {
	t.Parallel()
	run := inline(asked(life.PipelineBuild, life.Fate{Outcome: life.Hang, Task: "compile"}), func(spec *life.PipelineSpec) {
		spec.Tasks[1].Retries, spec.Tasks[1].Timeout = 2, seconds(30)
	}, life.PipelineBuild)
	h := live(t, rules(), run)
	attempt := []string{"Started", "Pending", "Running"}
	h.wantTask("compile", slices.Concat(attempt, []string{"ToBeRetried"}, attempt, []string{"ToBeRetried"}, attempt, []string{"TaskRunTimeout"})...)
	compile := h.taskRun("compile").Status
	if len(compile.RetriesStatus) != 2 || compile.PodName != "build-x7k2p-compile-pod-retry2" {
		t.Fatalf("%d attempts behind, now in %s", len(compile.RetriesStatus), compile.PodName)
	}
	for _, behind := range compile.RetriesStatus {
		if len(behind.RetriesStatus) != 0 || behind.Conditions.Succeeded().Reason != "TaskRunTimeout" {
			t.Errorf("an attempt behind is %+v", behind)
		}
	}
	if gap := compile.StartTime.Sub(compile.RetriesStatus[1].CompletionTime.Time); gap != time.Second {
		t.Errorf("the last attempt began %v after the one before, want 1 s", gap)
	}
}
