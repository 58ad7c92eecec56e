package life_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/simulator/life"
)

func seconds(n int) *metav1.Duration {
	return &metav1.Duration{Duration: time.Duration(n) * time.Second}
}

func TestARunThatGoesWellRunsEveryTaskThenFinally(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineImage, life.Fate{}))
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "Succeeded")
	h.wantMessage("Tasks Completed: 4 (Failed: 0, Cancelled 0), Skipped: 0")
	h.wantSkipped(nil)
	for _, task := range []string{"clone", "image", "sign", "notify"} {
		h.wantTask(task, "Started", "Pending", "Running", "Succeeded")
	}
	status := h.world.Run.Status
	if status.FinallyStartTime == nil || status.FinallyStartTime.Before(h.taskRun("sign").Status.CompletionTime) {
		t.Errorf("finally began at %v, the last task ended at %v", status.FinallyStartTime, h.taskRun("sign").Status.CompletionTime)
	}
	if len(status.Results) != 2 || status.Results[1].Value != h.taskRun("image").Status.Results[1].Value {
		t.Errorf("the pipeline's results are %v, the task's %v", status.Results, h.taskRun("image").Status.Results)
	}
	if got, want := h.taskRun("sign").Spec.Params[0].Value, status.Results[1].Value; got != want {
		t.Errorf("sign was given %v, want the image's digest %v", got, want)
	}
	if h.end.Sub(epoch) > 2*time.Minute {
		t.Errorf("the run took %v", h.end.Sub(epoch))
	}
}

func TestAFailedStepStopsWhatComesAfterButNotFinally(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineBuild, life.Fate{Outcome: life.Fail, Task: "compile", Step: "restore"}))
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "Failed")
	h.wantMessage("Tasks Completed: 3 (Failed: 1, Cancelled 0), Skipped: 1")
	h.wantSkipped(map[string]string{"report": "PipelineRun was stopping"})
	h.wantTask("compile", "Started", "Pending", "Running", "StepFailed")
	h.wantTask("notify", "Started", "Pending", "Running", "Succeeded")
}

func TestAWhenExpressionSkipsATaskAndTheRunIsCompleted(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineDeploy, life.Fate{})
	run.Spec.Params = []life.Param{{Name: "env", Value: "dev"}}
	h := live(t, rules(), run)
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "Completed")
	h.wantMessage("Tasks Completed: 3 (Failed: 0, Cancelled 0), Skipped: 1")
	h.wantSkipped(map[string]string{"verify": "When Expressions evaluated to false"})
	if when := h.world.Run.Status.SkippedTasks[0].WhenExpressions; len(when) != 1 || when[0].Input != "dev" {
		t.Errorf("the skipped task says when %v", when)
	}
}

func TestACancelledRunEndsAtOnce(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineBuild, life.Fate{Outcome: life.Cancel, Task: "compile"}))
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "Cancelled")
	h.wantMessage(`PipelineRun "build-x7k2p" was cancelled`)
	h.wantTask("compile", "Started", "Pending", "Running", "TaskRunCancelled")
	if len(h.world.TaskRuns) != 2 {
		t.Errorf("%d tasks were created, want clone and compile only", len(h.world.TaskRuns))
	}
	compile := h.taskRun("compile")
	if got, want := compile.Status.Conditions.Succeeded().Message, `TaskRun "build-x7k2p-compile" was cancelled. `+
		`TaskRun cancelled as the PipelineRun it belongs to has been cancelled.`; got != want {
		t.Errorf("got message %q, want %q", got, want)
	}
}

func TestAGracefulCancelStillRunsFinally(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineBuild, life.Fate{Outcome: life.CancelFn, Task: "compile"}))
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "CancelledRunningFinally", "Cancelled")
	h.wantMessage(`PipelineRun "build-x7k2p" was cancelled`)
	// Until the cancelled task has ended the reason is the cancel; then its failure comes first.
	h.wantSkipped(map[string]string{"report": "PipelineRun was stopping"})
	h.wantTask("compile", "Started", "Pending", "Running", "TaskRunCancelled")
	h.wantTask("notify", "Started", "Pending", "Running", "Succeeded")
}

func TestAStopLetsTheRunningTaskEndThenRunsFinally(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineBuild, life.Fate{Outcome: life.StopFn, Task: "compile"}))
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "StoppedRunningFinally", "Cancelled")
	h.wantMessage(`PipelineRun "build-x7k2p" was cancelled`)
	h.wantSkipped(map[string]string{"report": "PipelineRun was gracefully stopped"})
	h.wantTask("compile", "Started", "Pending", "Running", "Succeeded")
	h.wantTask("notify", "Started", "Pending", "Running", "Succeeded")
}

func TestAStopAfterAFailureIsAFailure(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{Outcome: life.Fail, Task: "compile"})
	h := live(t, rules(), run, func(w *life.World) {
		if w.Run.Status.FinallyStartTime != nil {
			w.Run.Spec.Status = life.SpecStoppedRunFinally
		}
	})
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "StoppedRunningFinally", "Failed")
}

func TestAHardCancelOverridesAGracefulOne(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineBuild, life.Fate{Outcome: life.CancelFn, Task: "compile"}), func(w *life.World) {
		if w.Run.Status.FinallyStartTime != nil {
			w.Run.Spec.Status = life.SpecCancelled
		}
	})
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "CancelledRunningFinally", "Cancelled")
	if got := h.taskRun("notify").Status.Conditions.Succeeded().Reason; got != "TaskRunCancelled" {
		t.Errorf("the finally task ended as %q, want it cancelled too", got)
	}
}

func TestARunOverItsTimeoutEndsAtOnce(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{Outcome: life.Hang, Task: "compile"})
	run.Spec.Timeouts = &life.Timeouts{Pipeline: seconds(90)}
	h := live(t, rules(), run)
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "PipelineRunTimeout")
	h.wantMessage(`PipelineRun "build-x7k2p" failed to finish within "1m30s"`)
	h.wantTask("compile", "Started", "Pending", "Running", "TaskRunCancelled")
	if len(h.world.TaskRuns) != 2 {
		t.Errorf("%d tasks were created, want no finally task", len(h.world.TaskRuns))
	}
	if took := h.world.Run.Status.CompletionTime.Sub(epoch); took < 90*time.Second || took > 92*time.Second {
		t.Errorf("the run ended after %v, want 90 s", took)
	}
}

func TestTasksOverTheirTimeoutStillGetFinally(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{Outcome: life.Hang, Task: "compile"})
	run.Spec.Timeouts = &life.Timeouts{Pipeline: seconds(90), Finally: seconds(30)}
	h := live(t, rules(), run)
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "PipelineRunTimeoutRunningFinally", "PipelineRunTimeout")
	h.wantMessage(`PipelineRun "build-x7k2p" failed due to tasks failed to finish within "1m0s"`)
	h.wantSkipped(map[string]string{"report": "PipelineRun was stopping"})
	h.wantTask("compile", "Started", "Pending", "Running", "TaskRunCancelled")
	h.wantTask("notify", "Started", "Pending", "Running", "Succeeded")
}

func TestTasksInTimeAreNotLateBecauseFinallyIsLong(t *testing.T) {
	t.Parallel()
	first := live(t, rules(), asked(life.PipelineBuild, life.Fate{})).world.Run.Status
	tasksTook := first.FinallyStartTime.Sub(first.StartTime.Time)
	run := asked(life.PipelineBuild, life.Fate{})
	run.Spec.Timeouts = &life.Timeouts{Tasks: &metav1.Duration{Duration: tasksTook + time.Second}}
	h := live(t, rules(), run)
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "Succeeded")
	if took := run.Status.CompletionTime.Sub(run.Status.StartTime.Time); took <= tasksTook+time.Second {
		t.Errorf("the run took %v: the finally task ended before the tasks' timeout, which proves nothing", took)
	}
}

func TestAFinallyTaskOverItsTimeoutFailsTheRun(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{Outcome: life.Hang, Task: "notify"})
	run.Spec.Timeouts = &life.Timeouts{Finally: seconds(20)}
	h := live(t, rules(), run)
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "Failed")
	h.wantTask("notify", "Started", "Pending", "Running", "TaskRunCancelled")
	h.wantMessage("Tasks Completed: 4 (Failed: 1, Cancelled 0), Skipped: 0")
}

func TestAPendingRunWaitsUntilSomebodyLetsItStart(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{Outcome: life.Unpend})
	run.Spec.Status = life.SpecPending
	h := live(t, rules(), run)
	h.wantRun("PipelineRunPending", "Started", "ResolvingPipelineRef", "Running", "Succeeded")
	if waited := run.Status.StartTime.Sub(epoch); waited != 5*time.Second {
		t.Errorf("the run started after %v, want 5 s", waited)
	}
}

func TestAPendingRunThatNobodyWantsStaysPending(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineBuild, life.Fate{})
	run.Spec.Status = life.SpecPending
	world := &life.World{Rules: rules(), Run: run}
	if _, err := world.Play(epoch, func() bool { return false }); err != nil {
		t.Fatal(err)
	}
	if got := run.Status.Conditions.Succeeded(); got.Reason != "PipelineRunPending" || run.Status.StartTime != nil {
		t.Errorf("got %v, started at %v", got, run.Status.StartTime)
	}
}

func TestATaskCancelledOnItsOwnStopsAndCancelsTheRun(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineTest, life.Fate{Outcome: life.Hang, Task: "unit"}), func(w *life.World) {
		for _, run := range w.TaskRuns {
			if run.Labels[life.LabelPipelineTask] == "unit" && run.Status.Conditions.Succeeded().Reason == "Running" {
				run.Spec.Status = life.SpecTaskRunCancelled
			}
		}
	})
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "PipelineRunStopping", "Cancelled")
	h.wantMessage("Tasks Completed: 4 (Failed: 0, Cancelled 1), Skipped: 1")
}

func TestAFailureWithoutFinallyIsStoppingUntilTheOthersEnd(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineTest, life.Fate{Outcome: life.Fail, Task: "lint"})
	spec := life.SampleCatalog().Pipelines[life.PipelineTest]
	spec.Finally = nil
	run.Spec.PipelineRef, run.Spec.PipelineSpec = nil, &spec
	r := rules()
	r.Seed = 3 // one under which lint ends before unit
	h := live(t, r, run)
	h.wantRun("Started", "Running", "PipelineRunStopping", "Failed")
	h.wantMessage("Tasks Completed: 3 (Failed: 1, Cancelled 0), Skipped: 1")
}

func TestAFailureThatThePipelineIgnoresIsASuccess(t *testing.T) {
	t.Parallel()
	run := asked(life.PipelineTest, life.Fate{Outcome: life.Fail, Task: "lint"})
	spec := life.SampleCatalog().Pipelines[life.PipelineTest]
	spec.Tasks[1].OnError = life.OnErrorContinue
	run.Spec.PipelineRef, run.Spec.PipelineSpec = nil, &spec
	h := live(t, rules(), run)
	h.wantRun("Started", "Running", "Succeeded")
	h.wantTask("lint", "Started", "Pending", "Running", "FailureIgnored")
	h.wantMessage("Tasks Completed: 5 (Failed: 1 (Ignored: 1), Cancelled 0), Skipped: 0")
}
