package podlog

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
)

// What keeps a log from being found.
var (
	// ErrGone says that the TaskRun or its pod is not there, or not yet.
	ErrGone = errors.New("there is no such TaskRun, or it has no pod")
	// ErrNoContainer says that the pod does not have the container.
	ErrNoContainer = errors.New("the pod has no such container")
	// ErrNotStarted says that the container has not run yet.
	ErrNotStarted = errors.New("the container has not started")
)

// Container is a container of a TaskRun's pod as it stood when it was found.
type Container struct {
	namespace, pod, name string
	podUID               types.UID
	id                   string // of the one whose log is read
}

// taskRun is what matters of a TaskRun.
type taskRun struct {
	Metadata metav1.ObjectMeta `json:"metadata"`
	Status   struct {
		PodName string `json:"podName"`
	} `json:"status"`
}

// Find finds a container of the present pod of a TaskRun. All three names have
// to be checked ones. The errors are those above, or say why the cluster could
// not be read.
//
// status.podName is a string that whoever reports for the TaskRun has written.
// A pod that is not the TaskRun's own counts as none, or that string would lead
// to the log of any pod of the namespace.
func (c *Client) Find(ctx context.Context, namespace, task, container string) (*Container, error) {
	var t taskRun
	err := c.get(ctx, &t, "apis", "tekton.dev", "v1", "namespaces", namespace, "taskruns", task)
	switch {
	case answered(err, http.StatusNotFound):
		return nil, fmt.Errorf("TaskRun %s: %w", task, ErrGone)
	case err != nil:
		return nil, fmt.Errorf("reading TaskRun %s: %w", task, err)
	case t.Status.PodName == "":
		return nil, fmt.Errorf("TaskRun %s has no pod so far: %w", task, ErrGone)
	case len(validation.IsDNS1123Subdomain(t.Status.PodName)) > 0:
		// As a part of a path it would lead to any object of the cluster.
		return nil, fmt.Errorf("TaskRun %s has a pod %.80q, which no pod can be named: %w", task, t.Status.PodName, ErrGone)
	}
	pod, err := c.getPod(ctx, namespace, t.Status.PodName)
	if err != nil {
		return nil, err
	}
	if !owns(t.Metadata.UID, pod) {
		return nil, fmt.Errorf("pod %s is not one of TaskRun %s: %w", t.Status.PodName, task, ErrGone)
	}
	id, err := started(pod, container)
	if err != nil {
		return nil, fmt.Errorf("container %s of pod %s: %w", container, pod.Name, err)
	}
	return &Container{namespace: namespace, pod: pod.Name, name: container, podUID: pod.UID, id: id}, nil
}

func (c *Client) getPod(ctx context.Context, namespace, name string) (*corev1.Pod, error) {
	pod := &corev1.Pod{}
	err := c.get(ctx, pod, "api", "v1", "namespaces", namespace, "pods", name)
	switch {
	case answered(err, http.StatusNotFound):
		return nil, fmt.Errorf("pod %s: %w", name, ErrGone)
	case err != nil:
		return nil, fmt.Errorf("reading pod %s: %w", name, err)
	case pod.Name != name || pod.Namespace != namespace:
		return nil, fmt.Errorf("reading pod %s of %s: the answer is about another object", name, namespace)
	}
	return pod, nil
}

// owns says whether the pod was made for the TaskRun of this UID.
func owns(task types.UID, pod *corev1.Pod) bool {
	return task != "" && slices.ContainsFunc(pod.OwnerReferences, func(o metav1.OwnerReference) bool {
		return o.Kind == "TaskRun" && o.UID == task
	})
}

// started gives the id of the container that runs under a name or, where none
// runs, of the one that ran last.
func started(pod *corev1.Pod, name string) (string, error) {
	if !has(pod, name) {
		return "", ErrNoContainer
	}
	status := statusOf(pod, name)
	last := status.LastTerminationState.Terminated
	switch {
	case status.State.Running != nil:
		return status.ContainerID, nil
	case status.State.Terminated != nil && status.State.Terminated.ContainerID != "":
		return status.State.Terminated.ContainerID, nil
	case last != nil && last.ContainerID != "": // the next one waits
		return last.ContainerID, nil
	case status.State.Terminated != nil:
		return "", fmt.Errorf("it ended and left no log: %w", ErrGone)
	default:
		return "", ErrNotStarted
	}
}

func has(pod *corev1.Pod, name string) bool {
	is := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(pod.Spec.Containers, is) || slices.ContainsFunc(pod.Spec.InitContainers, is) ||
		slices.ContainsFunc(pod.Spec.EphemeralContainers, func(c corev1.EphemeralContainer) bool { return c.Name == name })
}

// statusOf gives a container's status, a zero one where none was reported.
func statusOf(pod *corev1.Pod, name string) corev1.ContainerStatus {
	for _, of := range [][]corev1.ContainerStatus{
		pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses, pod.Status.EphemeralContainerStatuses,
	} {
		if i := slices.IndexFunc(of, func(s corev1.ContainerStatus) bool { return s.Name == name }); i >= 0 {
			return of[i]
		}
	}
	return corev1.ContainerStatus{}
}
