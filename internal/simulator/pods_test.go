package simulator_test

import (
	"bufio"
	"context"
	"io"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/clock"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/simulator"
	"hangar.io/glidepath/internal/simulator/life"
	"hangar.io/glidepath/internal/simulator/pods"
)

// keepPods starts a node, and returns its keeper and what stops it.
func keepPods(t *testing.T, node string) (keeper *pods.Keeper, stop func()) {
	t.Helper()
	k, err := api.StartKubelet()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(k.Stop)
	if err := k.Register(t.Context(), api.Client, node); err != nil {
		t.Fatal(err)
	}
	return pods.New(api.Client, k, node, 4, clock.RealClock{}), k.Stop
}

// watchPods is watchNamespace where Pods can be made.
func watchPods(t *testing.T, namespace string) *world {
	t.Helper()
	if err := api.EnsureServiceAccount(t.Context(), namespace, fleet.PipelineServiceAccount); err != nil {
		t.Fatal(err)
	}
	return watchNamespace(t, namespace)
}

func (w *world) follow(pod, container string) io.ReadCloser {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	w.t.Cleanup(cancel)
	stream, err := api.Client.CoreV1().Pods(w.namespace).
		GetLogs(pod, &corev1.PodLogOptions{Container: container, Follow: true, Timestamps: true}).Stream(ctx)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { _ = stream.Close() })
	return stream
}

func (w *world) pod(name string) *corev1.Pod {
	w.t.Helper()
	pod, err := api.Client.CoreV1().Pods(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	return pod
}

func TestAStepsLogGrowsWhileItRunsAndEndsWithIt(t *testing.T) {
	t.Parallel()
	w := watchPods(t, "app-podlogs-cicd")
	keeper, stopNode := keepPods(t, "node-podlogs")
	stop := simulate(t, w.namespace, func(c *simulator.Config) { c.Pods, c.Pace = keeper, 0.5 })
	w.ask(life.Sample{Name: "build-logs", Pipeline: life.PipelineBuild})
	w.waitTask("build-logs-compile", "Running")
	lines := bufio.NewScanner(w.follow("build-logs-compile-pod", "step-compile"))
	if !lines.Scan() || !strings.HasSuffix(lines.Text(), "Z + exec compile") {
		t.Fatalf("the log begins with %q, %v", lines.Text(), lines.Err())
	}
	w.mu.Lock()
	if w.tasks["build-logs-compile"].Status.Conditions.Done() {
		t.Error("the step had ended when its first line came, which proves nothing")
	}
	w.mu.Unlock()
	all := []string{lines.Text()}
	for lines.Scan() {
		all = append(all, lines.Text())
	}
	if lines.Err() != nil || !strings.HasSuffix(all[len(all)-1], " compile: done") {
		t.Errorf("the log ends with %q, %v", all[len(all)-1], lines.Err())
	}
	task := w.waitTask("build-logs-compile", "Succeeded")
	pod := w.pod("build-logs-compile-pod")
	if pod.Status.Phase != corev1.PodSucceeded || pod.Labels["tekton.dev/taskRun"] != task.Name || pod.Labels["tekton.dev/pipelineTask"] != "compile" ||
		!metav1.IsControlledBy(pod, &task.ObjectMeta) || len(pod.Status.PodIPs) != 1 {
		t.Errorf("the pod is %+v", pod)
	}
	// Another simulator on another node process has the same log: it follows from the step.
	stop()
	stopNode()
	again, _ := keepPods(t, "node-podlogs")
	simulate(t, w.namespace, func(c *simulator.Config) { c.Pods, c.Pace = again, 0.5 })
	waitAll(t, "the log is back", func() bool {
		text, err := api.Client.CoreV1().Pods(w.namespace).
			GetLogs(pod.Name, &corev1.PodLogOptions{Container: "step-compile", Timestamps: true}).DoRaw(t.Context())
		return err == nil && overlap(strings.Split(strings.TrimSpace(string(text)), "\n"), all)
	})
}

// overlap holds that both begin and end alike: how many lines were due at the very end depends on the moment.
func overlap(a, b []string) bool {
	return len(a) > 1 && len(b) > 1 && a[0] == b[0] && a[len(a)-1] == b[len(b)-1]
}

func TestPodsAreThoseOfTheirTaskRunsAttempts(t *testing.T) {
	t.Parallel()
	w := watchPods(t, "app-pods-cicd")
	keeper, _ := keepPods(t, "node-pods")
	simulate(t, w.namespace, func(c *simulator.Config) { c.Pods, c.Pace = keeper, 0.1 })
	w.ask(life.Sample{Name: "test-flaky", Pipeline: life.PipelineTest, Fate: life.Fate{Outcome: life.Flaky, Task: "unit"}})
	w.ask(life.Sample{Name: "build-hang", Pipeline: life.PipelineBuild, Fate: life.Fate{Outcome: life.Hang, Task: "compile"}})
	w.waitRun("test-flaky", "Succeeded")
	if got := w.pod("test-flaky-unit-pod").Status.Phase; got != corev1.PodFailed {
		t.Errorf("the first attempt's pod is %s", got)
	}
	if got := w.pod("test-flaky-unit-pod-retry1").Status.Phase; got != corev1.PodSucceeded {
		t.Errorf("the second attempt's pod is %s", got)
	}
	text, err := io.ReadAll(w.follow("test-flaky-unit-pod", "step-unit-tests"))
	if err != nil || !strings.HasSuffix(string(text), "error: unit-tests: exit status 1\n") {
		t.Errorf("the failed step wrote %q, %v", text, err)
	}
	w.waitTask("build-hang-compile", "Running")
	hanging := w.follow("build-hang-compile-pod", "step-compile")
	w.patch("build-hang", `{"spec":{"status":"Cancelled"}}`)
	if _, err := io.ReadAll(hanging); err != nil {
		t.Errorf("the log of a cancelled step ends with %v", err)
	}
	w.waitTask("build-hang-compile", "TaskRunCancelled")
	w.gonePods("build-hang-compile-pod")
	if err := w.client.Resource(pipelineRuns()).Namespace(w.namespace).Delete(t.Context(), "test-flaky", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	w.gonePods("test-flaky-unit-pod", "test-flaky-unit-pod-retry1", "test-flaky-clone-pod")
}

func (w *world) gonePods(names ...string) {
	w.t.Helper()
	for _, name := range names {
		waitAll(w.t, name+" is gone", func() bool {
			_, err := api.Client.CoreV1().Pods(w.namespace).Get(w.t.Context(), name, metav1.GetOptions{})
			return apierrors.IsNotFound(err)
		})
	}
}
