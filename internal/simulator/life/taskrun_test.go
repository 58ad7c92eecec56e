package life_test

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/simulator/life"
)

func TestAFlakyTaskIsRetriedInANewPod(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineTest, life.Fate{Outcome: life.Flaky, Task: "unit"}))
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "Succeeded")
	h.wantTask("unit", "Started", "Pending", "Running", "ToBeRetried", "Started", "Pending", "Running", "Succeeded")
	unit := h.taskRun("unit").Status
	if len(unit.RetriesStatus) != 1 {
		t.Fatalf("%d attempts behind, want 1", len(unit.RetriesStatus))
	}
	first := unit.RetriesStatus[0]
	if first.PodName != "test-x7k2p-unit-pod" || unit.PodName != "test-x7k2p-unit-pod-retry1" {
		t.Errorf("got pods %q and %q", first.PodName, unit.PodName)
	}
	if got, want := first.Conditions.Succeeded().Message, `"step-unit-tests" exited with code 1: Error`; got != want {
		t.Errorf("the first attempt ended with %q, want %q", got, want)
	}
	if first.StartTime == nil || first.CompletionTime == nil || unit.StartTime.Before(first.CompletionTime) {
		t.Errorf("attempts from %v to %v and from %v", first.StartTime, first.CompletionTime, unit.StartTime)
	}
}

func TestATaskOutOfRetriesFails(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineTest, life.Fate{Outcome: life.Fail, Task: "unit", Step: "unit-tests"}))
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "Failed")
	h.wantTask("unit", "Started", "Pending", "Running", "ToBeRetried", "Started", "Pending", "Running", "StepFailed")
}

func TestAStepThatMayFailIsContinuedAndTheTaskSucceeds(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineTest, life.Fate{Outcome: life.Fail, Task: "unit", Step: "vet"}))
	h.wantTask("unit", "Started", "Pending", "Running", "Succeeded")
	vet := h.taskRun("unit").Status.Steps[0]
	if vet.Terminated.ExitCode != 1 || vet.Terminated.Reason != "Completed" || vet.TerminationReason != "Continued" {
		t.Errorf("vet ended with %+v, %s", vet.Terminated, vet.TerminationReason)
	}
}

func TestStepsAfterAFailedOneAreSkipped(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineBuild, life.Fate{Outcome: life.Fail, Task: "compile", Step: "restore"}))
	steps := h.taskRun("compile").Status.Steps
	want := []struct {
		name, container, reason string
		exit                    int32
	}{
		{"restore", "step-restore", "Error", 1},
		{"compile", "step-compile", "Skipped", 1},
	}
	for i, w := range want {
		s := steps[i]
		if s.Name != w.name || s.Container != w.container || s.TerminationReason != w.reason || s.Terminated.ExitCode != w.exit {
			t.Errorf("step %d is %+v, want %+v", i, s, w)
		}
	}
}

func TestStepsRunOneAfterAnother(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	h := live(t, rules(), asked(life.PipelineBuild, life.Fate{}), func(w *life.World) {
		for _, run := range w.TaskRuns {
			if run.Labels[life.LabelPipelineTask] == "compile" && len(run.Status.Steps) == 2 {
				seen[stateOf(run.Status.Steps[0])+" "+stateOf(run.Status.Steps[1])] = true
			}
		}
	})
	for _, want := range []string{"waiting waiting", "running running", "terminated running", "terminated terminated"} {
		if !seen[want] {
			t.Errorf("the steps were never %q", want)
		}
	}
	steps := h.taskRun("compile").Status.Steps
	if !steps[1].Terminated.StartedAt.Equal(&steps[0].Terminated.FinishedAt) {
		t.Errorf("compile began at %v, restore ended at %v", steps[1].Terminated.StartedAt, steps[0].Terminated.FinishedAt)
	}
	for _, s := range steps {
		if length := s.Terminated.FinishedAt.Sub(s.Terminated.StartedAt.Time); length < 2*time.Second || length > 9*time.Second {
			t.Errorf("step %s took %v", s.Name, length)
		}
	}
}

func stateOf(s life.StepState) string {
	switch {
	case s.Waiting != nil:
		return "waiting"
	case s.Running != nil:
		return "running"
	default:
		return "terminated"
	}
}

func TestATaskOverItsOwnTimeoutFailsTheRun(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineDeploy, life.Fate{Outcome: life.Hang, Task: "deploy"}))
	h.wantRun("Started", "ResolvingPipelineRef", "Running", "Failed")
	h.wantTask("deploy", "Started", "Pending", "Running", "TaskRunTimeout")
	deploy := h.taskRun("deploy")
	if got, want := deploy.Status.Conditions.Succeeded().Message, `TaskRun "deploy-x7k2p-deploy" failed to finish within "40s"`; got != want {
		t.Errorf("got message %q, want %q", got, want)
	}
	apply := deploy.Status.Steps[1]
	if apply.Terminated.Reason != "TaskRunTimeout" || apply.TerminationReason != "TaskRunTimeout" ||
		apply.Terminated.Message != "Step apply terminated as pod deploy-x7k2p-deploy-pod is terminated" {
		t.Errorf("the step that hung ended as %+v, %s", apply.Terminated, apply.TerminationReason)
	}
}

func TestAChildIsOwnedAndLabelledByItsRun(t *testing.T) {
	t.Parallel()
	h := live(t, rules(), asked(life.PipelineTest, life.Fate{}))
	unit, notify := h.taskRun("unit"), h.taskRun("notify")
	for label, want := range map[string]string{
		"tekton.dev/pipeline": "test", "tekton.dev/pipelineRun": "test-x7k2p", "tekton.dev/pipelineTask": "unit",
		"tekton.dev/pipelineRunUID": "11111111-2222-4333-8444-555555555555", "tekton.dev/memberOf": "tasks",
		"tekton.dev/task": "unit-test", "app.kubernetes.io/managed-by": "tekton-pipelines", "hangar.io/app": "shop",
	} {
		if got := unit.Labels[label]; got != want {
			t.Errorf("label %s is %q, want %q", label, got, want)
		}
	}
	if got := notify.Labels["tekton.dev/memberOf"]; got != "finally" {
		t.Errorf("notify is member of %q", got)
	}
	if _, kept := unit.Annotations["chains.tekton.dev/signed"]; kept || unit.Annotations["hangar.io/initiator"] == "" {
		t.Errorf("the child's annotations are %v", unit.Annotations)
	}
	ref := unit.OwnerReferences[0]
	if ref.Kind != "PipelineRun" || ref.UID != h.world.Run.UID || !*ref.Controller || !*ref.BlockOwnerDeletion {
		t.Errorf("the child's owner is %+v", ref)
	}
	if unit.Spec.ServiceAccountName != "pipeline-runner" || unit.Spec.Retries != 1 || unit.Spec.Workspaces[0]["name"] != "source" {
		t.Errorf("the child's spec is %+v", unit.Spec)
	}
	child := h.world.Run.Status.ChildReferences[2]
	if child.Name != "test-x7k2p-unit" || child.Kind != "TaskRun" || child.DisplayName != "Unit tests" {
		t.Errorf("the child is referred to as %+v", child)
	}
}

// alone plays the life of a TaskRun that belongs to no PipelineRun.
func alone(t *testing.T, run *life.TaskRun) []string {
	t.Helper()
	var reasons []string
	now := epoch
	for range 100 {
		changed, next := rules().MoveTaskRun(run, now)
		reasons = appendNew(reasons, run.Status.Conditions.Succeeded().Reason)
		switch {
		case changed:
		case next.IsZero():
			return reasons
		default:
			now = next
		}
	}
	t.Fatal("the TaskRun does not come to rest")
	return nil
}

func single(spec life.TaskRunSpec) *life.TaskRun {
	return &life.TaskRun{
		ObjectMeta: metav1.ObjectMeta{Name: "single", Namespace: "app-shop-cicd", Annotations: map[string]string{life.FateAnnotation: "succeed"}},
		Spec:       spec,
	}
}

func TestATaskRunAlone(t *testing.T) {
	t.Parallel()
	steps := &life.TaskSpec{Steps: []life.Step{{Image: "a"}, {Name: "b", Image: "b"}}}
	for name, tt := range map[string]struct {
		spec  life.TaskRunSpec
		fate  string
		want  []string
		steps []string
	}{
		"with steps of its own, one unnamed, succeeds": {
			spec: life.TaskRunSpec{TaskSpec: steps}, want: []string{"Started", "Pending", "Running", "Succeeded"},
			steps: []string{"step-unnamed-0", "step-b"},
		},
		"that hangs is ended by Tekton's hour": {
			spec: life.TaskRunSpec{TaskSpec: steps}, fate: "hang:any", want: []string{"Started", "Pending", "Running", "TaskRunTimeout"},
			steps: []string{"step-unnamed-0", "step-b"},
		},
		"without any task fails to resolve": {
			spec: life.TaskRunSpec{TaskRef: &life.Ref{Name: "nowhere"}}, want: []string{"Started", "TaskRunResolutionFailed"},
		},
		"cancelled before it started ends": {
			spec: life.TaskRunSpec{TaskSpec: steps, Status: life.SpecTaskRunCancelled}, want: []string{"TaskRunCancelled"},
		},
		"pending stays so": {
			spec: life.TaskRunSpec{TaskSpec: steps, Status: life.SpecTaskRunPending}, want: []string{"TaskRunPending"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			run := single(tt.spec)
			if tt.fate != "" {
				run.Annotations[life.FateAnnotation] = tt.fate
			}
			if got := alone(t, run); !equal(got, tt.want) {
				t.Errorf("went %q, want %q", got, tt.want)
			}
			var containers []string
			for _, s := range run.Status.Steps {
				containers = append(containers, s.Container)
			}
			if !equal(containers, tt.steps) {
				t.Errorf("got containers %q, want %q", containers, tt.steps)
			}
		})
	}
}

func equal(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}
