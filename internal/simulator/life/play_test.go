package life_test

import (
	"slices"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/simulator/life"
	"hangar.io/glidepath/internal/simulator/lifetest"
)

var epoch = time.Date(2026, 11, 2, 9, 0, 0, 0, time.UTC)

func rules() life.Rules {
	return life.Rules{Seed: 7, Catalog: life.SampleCatalog(), Pace: 1}
}

// asked is a PipelineRun as somebody creates it.
func asked(pipeline string, fate life.Fate) *life.PipelineRun {
	return &life.PipelineRun{
		TypeMeta: metav1.TypeMeta{APIVersion: life.APIVersion, Kind: life.KindPipelineRun},
		ObjectMeta: metav1.ObjectMeta{
			Name: pipeline + "-x7k2p", Namespace: "app-shop-cicd", UID: "11111111-2222-4333-8444-555555555555",
			CreationTimestamp: metav1.NewTime(epoch),
			Labels:            map[string]string{"hangar.io/app": "shop"},
			Annotations: map[string]string{
				life.FateAnnotation: fate.String(), "chains.tekton.dev/signed": "true", "hangar.io/initiator": "user:default/ada",
			},
		},
		Spec: life.PipelineRunSpec{
			PipelineRef:     life.ClusterRef("pipeline", pipeline),
			TaskRunTemplate: &life.TaskRunTemplate{ServiceAccountName: "pipeline-runner"},
			Workspaces:      []map[string]any{{"name": "source", "emptyDir": map[string]any{}}},
		},
	}
}

// history is a life as a watcher would have seen it.
type history struct {
	t     *testing.T
	world *life.World
	end   time.Time
	// reasons of the PipelineRun and of each pipeline task's TaskRun, in order, each change once.
	run  []string
	task map[string][]string
}

// live plays a run's life to its end, with every step checked against the table of what is legal.
func live(t *testing.T, r life.Rules, run *life.PipelineRun, each ...func(*life.World)) history {
	t.Helper()
	h := history{t: t, world: &life.World{Rules: r, Run: run}, task: map[string][]string{}}
	before := copyOf(h.world)
	end, err := h.world.Play(epoch, func() bool {
		h.check(before)
		h.note()
		before = copyOf(h.world)
		for _, do := range each {
			do(h.world)
		}
		return false
	})
	if err != nil {
		t.Fatalf("playing %s: %v", run.Name, err)
	}
	h.end = end
	h.check(before)
	h.note()
	if !run.Status.Conditions.Done() {
		t.Errorf("%s came to rest as %q", run.Name, run.Status.Conditions.Succeeded().Reason)
	}
	return h
}

func (h history) check(before *life.World) {
	h.t.Helper()
	if err := lifetest.PipelineRun(before.Run, h.world.Run); err != nil {
		h.t.Errorf("%s: %v", h.world.Run.Name, err)
	}
	for i, after := range h.world.TaskRuns {
		was := &life.TaskRun{}
		if i < len(before.TaskRuns) {
			was = before.TaskRuns[i]
		}
		if err := lifetest.TaskRun(was, after); err != nil {
			h.t.Errorf("%s: %v", after.Name, err)
		}
	}
}

func (h *history) note() {
	h.run = appendNew(h.run, h.world.Run.Status.Conditions.Succeeded().Reason)
	for _, run := range h.world.TaskRuns {
		name := run.Labels[life.LabelPipelineTask]
		h.task[name] = appendNew(h.task[name], run.Status.Conditions.Succeeded().Reason)
	}
}

func appendNew(list []string, reason string) []string {
	if reason == "" || len(list) > 0 && list[len(list)-1] == reason {
		return list
	}
	return append(list, reason)
}

func (h history) taskRun(task string) *life.TaskRun {
	h.t.Helper()
	for _, run := range h.world.TaskRuns {
		if run.Labels[life.LabelPipelineTask] == task {
			return run
		}
	}
	h.t.Fatalf("task %s was never created", task)
	return nil
}

func (h history) wantRun(reasons ...string) {
	h.t.Helper()
	if !slices.Equal(h.run, reasons) {
		h.t.Errorf("PipelineRun went %q, want %q", h.run, reasons)
	}
}

func (h history) wantTask(task string, reasons ...string) {
	h.t.Helper()
	if !slices.Equal(h.task[task], reasons) {
		h.t.Errorf("task %s went %q, want %q", task, h.task[task], reasons)
	}
}

func (h history) wantMessage(message string) {
	h.t.Helper()
	if got := h.world.Run.Status.Conditions.Succeeded().Message; got != message {
		h.t.Errorf("got message %q, want %q", got, message)
	}
}

func (h history) wantSkipped(tasks map[string]string) {
	h.t.Helper()
	got := map[string]string{}
	for _, s := range h.world.Run.Status.SkippedTasks {
		got[s.Name] = s.Reason
	}
	if len(got) != len(tasks) {
		h.t.Errorf("skipped %v, want %v", got, tasks)
	}
	for name, reason := range tasks {
		if got[name] != reason {
			h.t.Errorf("task %s skipped for %q, want %q", name, got[name], reason)
		}
	}
}

// copyOf goes as deep as anything in this package changes objects in place.
func copyOf(w *life.World) *life.World {
	run := *w.Run
	run.Status.Conditions = slices.Clone(run.Status.Conditions)
	c := &life.World{Run: &run}
	for _, task := range w.TaskRuns {
		clone := *task
		clone.Status.Conditions = slices.Clone(task.Status.Conditions)
		clone.Status.Steps = slices.Clone(task.Status.Steps)
		c.TaskRuns = append(c.TaskRuns, &clone)
	}
	return c
}
