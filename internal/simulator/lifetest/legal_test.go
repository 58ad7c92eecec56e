package lifetest_test

import (
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/simulator/life"
	"hangar.io/glidepath/internal/simulator/lifetest"
)

func at(second int) *metav1.Time {
	t := metav1.NewTime(time.Date(2026, 11, 2, 9, 0, second, 0, time.UTC))
	return &t
}

func condition(status corev1.ConditionStatus, reason string) life.Conditions {
	return life.Conditions{{Type: life.ConditionSucceeded, Status: status, Reason: reason, LastTransitionTime: *at(5)}}
}

func run(status life.PipelineRunStatus) *life.PipelineRun {
	return &life.PipelineRun{ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *at(1)}, Status: status}
}

func running(change func(*life.PipelineRunStatus)) *life.PipelineRun {
	status := life.PipelineRunStatus{
		Conditions: condition(corev1.ConditionUnknown, "Running"), StartTime: at(2),
		ChildReferences: []life.ChildReference{{Name: "a-clone", PipelineTaskName: "clone"}},
		SkippedTasks:    []life.SkippedTask{{Name: "verify", Reason: "because"}},
	}
	change(&status)
	return run(status)
}

func TestAPipelineRunThatCouldNotBe(t *testing.T) {
	t.Parallel()
	same := func(*life.PipelineRunStatus) {}
	ended := func(s *life.PipelineRunStatus) {
		s.Conditions, s.CompletionTime = condition(corev1.ConditionTrue, "Succeeded"), at(9)
	}
	for name, tt := range map[string]struct {
		before, after *life.PipelineRun
		fault         string // empty: nothing is wrong
	}{
		"stays as it is": {running(same), running(same), ""},
		"ends":           {running(same), running(ended), ""},
		"ends without running": {
			&life.PipelineRun{}, running(ended),
			`reason "Succeeded" follows ""`,
		},
		"succeeds with False": {running(same), running(func(s *life.PipelineRunStatus) {
			ended(s)
			s.Conditions = condition(corev1.ConditionFalse, "Succeeded")
		}), "want True"},
		"changes after its end": {
			running(ended), running(func(s *life.PipelineRunStatus) { ended(s); s.CompletionTime = at(10) }),
			"changed after the end",
		},
		"goes on after its end": {running(ended), running(same), `reason "Running" follows "Succeeded"`},
		"ends at no time": {
			running(same), running(func(s *life.PipelineRunStatus) { ended(s); s.CompletionTime = nil }),
			"ended is true but completionTime",
		},
		"is complete before its end": {
			running(same), running(func(s *life.PipelineRunStatus) { s.CompletionTime = at(3) }),
			"ended is false but completionTime",
		},
		"ends unstarted":          {running(same), running(func(s *life.PipelineRunStatus) { ended(s); s.StartTime = nil }), "without a startTime"},
		"starts before it exists": {running(same), running(func(s *life.PipelineRunStatus) { s.StartTime = at(0) }), "before its creation"},
		"ends before it starts":   {running(same), running(func(s *life.PipelineRunStatus) { ended(s); s.StartTime = at(11) }), "before its start"},
		"forgets a child":         {running(same), running(func(s *life.PipelineRunStatus) { s.ChildReferences = nil }), "child a-clone is forgotten"},
		"no longer skips":         {running(same), running(func(s *life.PipelineRunStatus) { s.SkippedTasks = nil }), "verify is no longer skipped"},
		"skips what it has created": {running(same), running(func(s *life.PipelineRunStatus) {
			s.SkippedTasks[0].Name = "clone"
			s.SkippedTasks = append(s.SkippedTasks, life.SkippedTask{Name: "verify"})
		}), "clone is skipped and created"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, lifetest.PipelineRun(tt.before, tt.after), tt.fault)
		})
	}
}

func check(t *testing.T, err error, fault string) {
	t.Helper()
	if fault == "" && err != nil || fault != "" && (err == nil || !strings.Contains(err.Error(), fault)) {
		t.Errorf("got %v, want %q", err, fault)
	}
}

// attempt is a TaskRun with one step ended and one running.
func attempt(change func(*life.TaskRun)) *life.TaskRun {
	task := &life.TaskRun{
		ObjectMeta: metav1.ObjectMeta{CreationTimestamp: *at(1)},
		Spec:       life.TaskRunSpec{Retries: 1},
		Status: life.TaskRunStatus{
			Conditions: condition(corev1.ConditionUnknown, "Running"), StartTime: at(2), PodName: "a-pod",
			Steps: []life.StepState{
				step("one", corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: *at(3), FinishedAt: *at(4)}}),
				step("two", corev1.ContainerState{Running: &corev1.ContainerStateRunning{StartedAt: *at(3)}}),
			},
		},
	}
	change(task)
	return task
}

func step(name string, state corev1.ContainerState) life.StepState {
	s := life.StepState{Name: name, Container: "step-" + name, ContainerState: state}
	if state.Terminated != nil {
		s.TerminationReason = "Completed"
	}
	return s
}

func ended(name string, from, to int) life.StepState {
	return step(name, corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{StartedAt: *at(from), FinishedAt: *at(to)}})
}

func TestATaskRunThatCouldNotBe(t *testing.T) {
	t.Parallel()
	failed := life.TaskRunStatus{Conditions: condition(corev1.ConditionFalse, "StepFailed")}
	for name, tt := range map[string]struct {
		change func(*life.TaskRun)
		fault  string // empty: nothing is wrong
	}{
		"stays as it is":       {func(*life.TaskRun) {}, ""},
		"ends its second step": {func(r *life.TaskRun) { r.Status.Steps[1] = ended("two", 4, 5) }, ""},
		"is pending again":     {func(r *life.TaskRun) { r.Status.Conditions = condition(corev1.ConditionUnknown, "Pending") }, `"Pending" follows "Running"`},
		"has a step run again": {func(r *life.TaskRun) {
			r.Status.Steps[0] = r.Status.Steps[1]
			r.Status.Steps[0].Name, r.Status.Steps[0].Container = "one", "step-one"
		}, "step one went back"},
		"forgets a step":                  {func(r *life.TaskRun) { r.Status.Steps = r.Status.Steps[:1] }, "steps are forgotten"},
		"has a step in two states":        {func(r *life.TaskRun) { r.Status.Steps[1].Waiting = &corev1.ContainerStateWaiting{} }, "in 2 states"},
		"has a step in another container": {func(r *life.TaskRun) { r.Status.Steps[1].Container = "two" }, "in container two"},
		"ends its second step first": {func(r *life.TaskRun) {
			r.Status.Steps = []life.StepState{r.Status.Steps[1], ended("one", 3, 4)}
			r.Status.PodName = "other"
		}, "ended before the one in front"},
		"ends its second step earlier": {func(r *life.TaskRun) { r.Status.Steps[1] = ended("two", 3, 3) }, "earlier than the one in front"},
		"ends a step before it began":  {func(r *life.TaskRun) { r.Status.Steps[1] = ended("two", 6, 5) }, "before it began"},
		"ends a step for no reason": {func(r *life.TaskRun) {
			r.Status.Steps[1] = ended("two", 4, 5)
			r.Status.Steps[1].TerminationReason = ""
		}, "for no reason"},
		"ends with a step open": {func(r *life.TaskRun) {
			r.Status.Conditions, r.Status.CompletionTime = condition(corev1.ConditionTrue, "Succeeded"), at(9)
		}, "steps open"},
		"has more attempts than allowed":   {func(r *life.TaskRun) { r.Status.RetriesStatus = []life.TaskRunStatus{failed, failed} }, "2 attempts behind, 1 retries"},
		"has an attempt that did not fail": {func(r *life.TaskRun) { r.Status.RetriesStatus = []life.TaskRunStatus{{}} }, "attempt 0 did not fail"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, lifetest.TaskRun(attempt(func(*life.TaskRun) {}), attempt(tt.change)), tt.fault)
			if tt.fault == "" {
				check(t, lifetest.TaskRunAlone(attempt(tt.change)), "")
			}
		})
	}
	retried := attempt(func(r *life.TaskRun) { r.Status.RetriesStatus = []life.TaskRunStatus{failed} })
	check(t, lifetest.TaskRun(retried, attempt(func(*life.TaskRun) {})), "an earlier attempt is forgotten")
	waiting := attempt(func(r *life.TaskRun) { r.Status.Conditions = condition(corev1.ConditionUnknown, "ToBeRetried") })
	started := attempt(func(r *life.TaskRun) {
		r.Status.Conditions, r.Status.RetriesStatus = condition(corev1.ConditionUnknown, "Started"), []life.TaskRunStatus{failed}
	})
	check(t, lifetest.TaskRun(waiting, started), "that had not begun")
}
