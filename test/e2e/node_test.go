package e2e_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"hangar.io/glidepath/internal/standin/kubelet"
)

const nodeName = "e2e-node"

// node is the kubelet that the API server asks for logs.
var node = sync.OnceValues(func() (*kubelet.Kubelet, error) {
	k, err := gw.APIServer.StartKubelet()
	if err != nil {
		return nil, err
	}
	return k, k.Register(context.Background(), gw.APIServer.Client, nodeName)
})

func startNode(t *testing.T) *kubelet.Kubelet {
	t.Helper()
	k, err := node()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Up(); err != nil {
		t.Fatal(err)
	}
	k.SetFaults()
	t.Cleanup(func() { k.SetFaults() })
	return k
}

var wroteAt = time.Date(2026, 11, 29, 10, 0, 0, 123_000_000, time.UTC)

// task is a TaskRun of an app with a pod of three containers: step-test runs
// and writes, step-after waits, and prepare, an init container, has ended.
type task struct {
	t               *testing.T
	node            *kubelet.Kubelet
	app, namespace  string
	name, pod, path string
	log             *kubelet.Log
	object          *corev1.Pod
}

// newTask makes a TaskRun with its pod.
func newTask(t *testing.T, app, name string) *task {
	t.Helper()
	k := startNode(t)
	x := &task{t: t, node: k, app: app, namespace: "app-" + app + "-cicd", name: name, pod: name + "-pod"}
	x.path = "/v1/apps/" + app + "/live/taskruns/" + name + "/logs/step-test"
	create(t, taskRuns, "TaskRun", x.namespace, name, nil)
	x.report(x.pod)
	x.makePod(x.uid())
	return x
}

func (x *task) uid() types.UID {
	x.t.Helper()
	o, err := cluster(x.t).Resource(taskRuns).Namespace(x.namespace).Get(x.t.Context(), x.name, metav1.GetOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	return o.GetUID()
}

// report says in the TaskRun's status which pod is its.
func (x *task) report(pod string) {
	x.t.Helper()
	c := cluster(x.t).Resource(taskRuns).Namespace(x.namespace)
	o, err := c.Get(x.t.Context(), x.name, metav1.GetOptions{})
	if err == nil {
		err = unstructured.SetNestedField(o.Object, pod, "status", "podName")
	}
	if err == nil {
		_, err = c.UpdateStatus(x.t.Context(), o, metav1.UpdateOptions{})
	}
	if err != nil {
		x.t.Fatal(err)
	}
}

func (x *task) makePod(owner types.UID) {
	x.t.Helper()
	no := false
	if err := gw.APIServer.EnsureServiceAccount(x.t.Context(), x.namespace, "default"); err != nil {
		x.t.Fatal(err)
	}
	pods := gw.APIServer.Client.CoreV1().Pods(x.namespace)
	pod, err := pods.Create(x.t.Context(), &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: x.pod, Labels: map[string]string{"tekton.dev/taskRun": x.name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "tekton.dev/v1", Kind: "TaskRun", Name: x.name, UID: owner}},
		},
		Spec: corev1.PodSpec{
			NodeName: nodeName, AutomountServiceAccountToken: &no, RestartPolicy: corev1.RestartPolicyNever,
			InitContainers: []corev1.Container{{Name: "prepare", Image: "i"}},
			Containers:     []corev1.Container{{Name: "step-test", Image: "i"}, {Name: "step-after", Image: "i"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	x.t.Cleanup(func() { x.removePod(cleanupContext(x.t)) })
	x.object = pod
	prepare := x.id("prepare")
	x.log = x.node.NewLog(x.id("step-test"))
	x.status(corev1.ContainerStatus{Name: "step-test", ContainerID: x.id("step-test"), State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}}},
		corev1.ContainerStatus{Name: "step-after", State: corev1.ContainerState{Waiting: &corev1.ContainerStateWaiting{Reason: "PodInitializing"}}})
	x.node.NewLog(prepare).Append(wroteAt, []byte("prepared"))
}

func (x *task) id(container string) string {
	return fmt.Sprintf("containerd://%s-%s-%s", x.namespace, x.pod, container)
}

// status reports how the containers are.
func (x *task) status(containers ...corev1.ContainerStatus) {
	x.t.Helper()
	pods := gw.APIServer.Client.CoreV1().Pods(x.namespace)
	x.object.Status.ContainerStatuses = containers
	x.object.Status.InitContainerStatuses = []corev1.ContainerStatus{{
		Name: "prepare", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: x.id("prepare")}},
	}}
	pod, err := pods.UpdateStatus(x.t.Context(), x.object, metav1.UpdateOptions{})
	if err != nil {
		x.t.Fatal(err)
	}
	x.object = pod
	x.node.SetPod(pod.DeepCopy())
}

// end has step-test end, as a node reports it.
func (x *task) end() {
	x.t.Helper()
	x.log.End()
	x.status(corev1.ContainerStatus{Name: "step-test", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ContainerID: x.id("step-test")}}})
}

func (x *task) removePod(ctx context.Context) {
	x.t.Helper()
	now := int64(0)
	_ = gw.APIServer.Client.CoreV1().Pods(x.namespace).Delete(ctx, x.pod, metav1.DeleteOptions{GracePeriodSeconds: &now}) // may be gone
	x.node.RemovePod(x.namespace, x.pod)
}

func (x *task) write(lines ...string) {
	for i, text := range lines {
		x.log.Append(wroteAt.Add(time.Duration(i)*time.Second), []byte(text))
	}
}

// kubectl is the log as kubectl logs --timestamps gives it.
func (x *task) kubectl(container string) string {
	x.t.Helper()
	raw, err := gw.APIServer.Client.CoreV1().Pods(x.namespace).
		GetLogs(x.pod, &corev1.PodLogOptions{Container: container, Timestamps: true}).DoRaw(x.t.Context())
	if err != nil {
		x.t.Fatal(err)
	}
	return string(raw)
}

// sampleLog is there behind the path of getLiveLogs in calls.
func sampleLog(t *testing.T) {
	t.Helper()
	newTask(t, "gate-api", "build-unit").write("hello")
}
