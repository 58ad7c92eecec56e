package simulator_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/simulator"
	"hangar.io/glidepath/internal/simulator/life"
)

// simulate runs a simulator for the namespace and returns what stops it; the end of the test does too.
func simulate(t *testing.T, namespace string, change func(*simulator.Config)) (stop func()) {
	t.Helper()
	cfg := simulator.Config{REST: api.Admin, Namespaces: []string{namespace}, Seed: 4, Pace: 0.02, Retention: time.Hour}
	if change != nil {
		change(&cfg)
	}
	s, err := simulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Run(ctx) }()
	stopped := false
	stop = func() {
		cancel()
		if stopped {
			return
		}
		stopped = true
		if err := <-ended; err != nil {
			t.Errorf("the simulator ended with %v", err)
		}
	}
	t.Cleanup(stop)
	return stop
}

func TestItsOwnRunsGoEveryWayThereIs(t *testing.T) {
	t.Parallel()
	w := watchNamespace(t, "app-own-cicd")
	simulate(t, w.namespace, func(c *simulator.Config) { c.RunsInFlight, c.Pace = 8, 0.1 })
	wanted := []string{
		"PipelineRun Started", "PipelineRun ResolvingPipelineRef", "PipelineRun Running", "PipelineRun Succeeded",
		"PipelineRun Completed", "PipelineRun Failed", "PipelineRun PipelineRunTimeout", "PipelineRun PipelineRunPending",
		"PipelineRun PipelineRunTimeoutRunningFinally", "PipelineRun CouldntGetPipeline",
		"TaskRun Pending", "TaskRun Running", "TaskRun Succeeded", "TaskRun StepFailed", "TaskRun ToBeRetried",
		"TaskRun TaskRunTimeout", "TaskRun TaskRunCancelled",
	}
	w.wait("each of them was seen", func() bool {
		return !slices.ContainsFunc(wanted, func(reason string) bool { return w.reasons[reason] == 0 })
	})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.most > 8 {
		t.Errorf("%d runs were in flight, want at most 8", w.most)
	}
}

func TestARunThatSomebodyElseMadeGoesToItsEnd(t *testing.T) {
	t.Parallel()
	w := watchNamespace(t, "app-others-cicd")
	simulate(t, w.namespace, nil)
	for name, tt := range map[string]struct {
		fate    life.Fate
		request string
		want    string
		finally bool
	}{
		"plain":   {fate: life.Fate{}, want: "Succeeded", finally: true},
		"cancel":  {fate: life.Fate{Outcome: life.Hang, Task: "compile"}, request: "Cancelled", want: "Cancelled"},
		"finally": {fate: life.Fate{Outcome: life.Hang, Task: "compile"}, request: "CancelledRunFinally", want: "Cancelled", finally: true},
	} {
		t.Run(name, func(t *testing.T) {
			run := "build-" + name
			w.ask(life.Sample{Name: run, Pipeline: life.PipelineBuild, Fate: tt.fate})
			if tt.request != "" {
				w.waitTask(run+"-compile", "Running")
				w.patch(run, fmt.Sprintf(`{"spec":{"status":%q}}`, tt.request))
				w.waitTask(run+"-compile", "TaskRunCancelled")
			}
			w.waitRun(run, tt.want)
			w.mu.Lock()
			defer w.mu.Unlock()
			if notify := w.tasks[run+"-notify"]; (notify != nil) != tt.finally {
				t.Errorf("the finally task ran: %t, want %t", notify != nil, tt.finally)
			}
		})
	}
}

func TestATaskRunOfNobodyIsMovedAndRetired(t *testing.T) {
	t.Parallel()
	w := watchNamespace(t, "app-alone-cicd")
	simulate(t, w.namespace, func(c *simulator.Config) { c.Retention = time.Second })
	object, err := life.Encode(&life.TaskRun{
		TypeMeta:   metav1.TypeMeta{APIVersion: life.APIVersion, Kind: life.KindTaskRun},
		ObjectMeta: metav1.ObjectMeta{Name: "alone", Namespace: w.namespace, Annotations: map[string]string{life.FateAnnotation: "succeed"}},
		Spec:       life.TaskRunSpec{TaskRef: life.ClusterRef("task", "lint")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Resource(taskRuns()).Namespace(w.namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	w.wait("it has succeeded and is gone", func() bool { return w.ends["TaskRun Succeeded"] == 1 && w.tasks["alone"] == nil })
}

func TestFinishedRunsGoWithTheirTaskRuns(t *testing.T) {
	t.Parallel()
	w := watchNamespace(t, "app-retire-cicd")
	simulate(t, w.namespace, func(c *simulator.Config) { c.Retention = time.Second })
	w.ask(life.Sample{Name: "build-old", Pipeline: life.PipelineBuild})
	w.wait("it has succeeded and is gone", func() bool {
		return w.ends["PipelineRun Succeeded"] == 1 && len(w.runs) == 0 && len(w.tasks) == 0
	})
}

func TestTheTaskRunsOfADeletedRunGo(t *testing.T) {
	t.Parallel()
	w := watchNamespace(t, "app-gone-cicd")
	simulate(t, w.namespace, nil)
	hang := life.Sample{Name: "build-gone", Pipeline: life.PipelineBuild, Fate: life.Fate{Outcome: life.Hang, Task: "compile"}}
	w.ask(hang)
	first := w.waitTask("build-gone-compile", "Running")
	runs := w.client.Resource(pipelineRuns()).Namespace(w.namespace)
	if err := runs.Delete(t.Context(), "build-gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// At once again under the same name, so that the left-overs of the first are in the second's way.
	w.ask(hang)
	w.wait("the second run has a TaskRun of its own", func() bool {
		task := w.tasks["build-gone-compile"]
		return task != nil && task.UID != first.UID && task.Status.Conditions.Succeeded().Reason == "Running"
	})
	if err := runs.Delete(t.Context(), "build-gone", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.wait("nothing is left", func() bool { return len(w.runs) == 0 && len(w.tasks) == 0 })
}

// counter counts the log lines with a message.
type counter struct {
	slog.Handler
	message string
	count   *atomic.Int64
}

func (counter) Enabled(context.Context, slog.Level) bool { return true }

func (c counter) Handle(_ context.Context, record slog.Record) error {
	if record.Message == c.message {
		c.count.Add(1)
	}
	return nil
}

func TestATaskRunThatOnlySaysItBelongsDoesNot(t *testing.T) {
	t.Parallel()
	w := watchNamespace(t, "app-impostor-cicd")
	object, err := life.Encode(&life.TaskRun{
		TypeMeta: metav1.TypeMeta{APIVersion: life.APIVersion, Kind: life.KindTaskRun},
		ObjectMeta: metav1.ObjectMeta{
			Name: "impostor", Namespace: w.namespace,
			Labels: map[string]string{life.LabelPipelineRun: "build-true", life.LabelPipelineTask: "compile"},
		},
		Spec: life.TaskRunSpec{TaskRef: life.ClusterRef("task", "lint")},
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.client.Resource(taskRuns()).Namespace(w.namespace).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	simulate(t, w.namespace, nil)
	w.ask(life.Sample{Name: "build-true", Pipeline: life.PipelineBuild})
	for _, ref := range w.waitRun("build-true", "Succeeded").Status.ChildReferences {
		if ref.Name == "impostor" {
			t.Error("the impostor counts as the run's compile")
		}
	}
	w.waitTask("build-true-compile", "Succeeded")
}

// overtaker has somebody else write just before the first write below a path.
type overtaker struct {
	next     http.RoundTripper
	path     string
	overtake func(context.Context) error
	done     atomic.Bool
}

func (o *overtaker) RoundTrip(r *http.Request) (*http.Response, error) {
	writes := r.Method == http.MethodPut || r.Method == http.MethodPatch
	if writes && strings.Contains(r.URL.Path, o.path) && o.done.CompareAndSwap(false, true) {
		if err := o.overtake(r.Context()); err != nil {
			return nil, err
		}
	}
	return o.next.RoundTrip(r)
}

func TestWhoElseWritesIsNotOverwritten(t *testing.T) {
	t.Parallel()
	w := watchNamespace(t, "app-writers-cicd")
	var conflicts atomic.Int64
	simulate(t, w.namespace, func(c *simulator.Config) {
		c.Logger = slog.New(counter{Handler: slog.DiscardHandler, message: "object moved meanwhile, trying again", count: &conflicts})
		c.REST = rest.CopyConfig(c.REST)
		c.REST.Wrap(func(next http.RoundTripper) http.RoundTripper {
			return &overtaker{next: next, path: "/pipelineruns/image-busy", overtake: func(ctx context.Context) error {
				_, err := w.client.Resource(pipelineRuns()).Namespace(w.namespace).Patch(ctx, "image-busy", types.MergePatchType,
					[]byte(`{"metadata":{"annotations":{"first":"yes"}}}`), metav1.PatchOptions{})
				return err
			}}
		})
	})
	w.ask(life.Sample{Name: "image-busy", Pipeline: life.PipelineImage})
	const writes = 100
	for i := range writes {
		w.patch("image-busy", fmt.Sprintf(`{"metadata":{"annotations":{"count":"%d"}}}`, i+1))
	}
	run := w.waitRun("image-busy", "Succeeded")
	if run.Annotations["first"] != "yes" || run.Annotations["count"] != fmt.Sprint(writes) || run.Labels[life.LabelPipeline] != life.PipelineImage {
		t.Errorf("the run has annotations %v and labels %v", run.Annotations, run.Labels)
	}
	if conflicts.Load() == 0 {
		t.Error("nobody was ever in the simulator's way, which proves nothing")
	}
}

func TestAnotherSimulatorGoesOnWhereOneStopped(t *testing.T) {
	t.Parallel()
	w := watchNamespace(t, "app-restart-cicd")
	stop := simulate(t, w.namespace, nil)
	w.ask(life.Sample{
		Name: "build-handed-over", Pipeline: life.PipelineBuild, Fate: life.Fate{Outcome: life.Hang, Task: "compile"},
		Timeouts: &life.Timeouts{Pipeline: &metav1.Duration{Duration: 40 * time.Second}, Finally: &metav1.Duration{Duration: 20 * time.Second}},
	})
	w.waitTask("build-handed-over-compile", "Running")
	stop()
	simulate(t, w.namespace, nil)
	w.waitRun("build-handed-over", "PipelineRunTimeout")
	w.waitTask("build-handed-over-notify", "Succeeded")
}

func TestNothingIsLeftRunning(t *testing.T) {
	w := watchNamespace(t, "app-leak-cicd")
	before := goleak.IgnoreCurrent()
	stop := simulate(t, w.namespace, func(c *simulator.Config) { c.RunsInFlight = 2 })
	w.wait("it is at work", func() bool { return w.reasons["TaskRun Running"] > 0 })
	stop()
	goleak.VerifyNone(t, before)
}

func TestARunThatCannotBeginIsAnError(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]*rest.Config{
		"nobody listens": {Host: "https://127.0.0.1:1"},
		"a stranger":     {Host: api.Admin.Host, TLSClientConfig: rest.TLSClientConfig{CAData: api.Admin.CAData, CAFile: api.Admin.CAFile}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, err := simulator.New(simulator.Config{REST: cfg, Namespaces: []string{"app-shop-cicd"}})
			if err != nil {
				t.Fatal(err)
			}
			if err := s.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "list pipelineruns") {
				t.Errorf("got %v, want what it could not do", err)
			}
		})
	}
}

func TestNewNamesEveryFaultOfItsConfiguration(t *testing.T) {
	t.Parallel()
	_, err := simulator.New(simulator.Config{RunsInFlight: -1, Pace: -1, Retention: -1})
	for _, want := range []string{"no REST", "no namespaces", "-1 runs in flight", "pace -1", "retention -1ns"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want it to say %q", err, want)
		}
	}
}
