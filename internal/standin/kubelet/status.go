package kubelet

import (
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// hasContainer reports whether the pod's spec has the container.
func hasContainer(pod *corev1.Pod, name string) bool {
	is := func(c corev1.Container) bool { return c.Name == name }
	return slices.ContainsFunc(pod.Spec.Containers, is) || slices.ContainsFunc(pod.Spec.InitContainers, is)
}

func statuses(pod *corev1.Pod) []corev1.ContainerStatus {
	return slices.Concat(pod.Status.ContainerStatuses, pod.Status.InitContainerStatuses)
}

func terminatedID(state corev1.ContainerState) string {
	if state.Terminated == nil {
		return ""
	}
	return state.Terminated.ContainerID
}

// containerID finds the container whose log is meant: the running one, else the one that ran last, or, when asked for, the
// one before. The errors are in a real kubelet's words, which callers of the API server see.
func containerID(pod *corev1.Pod, name string, previous bool) (string, error) {
	all := statuses(pod)
	i := slices.IndexFunc(all, func(s corev1.ContainerStatus) bool { return s.Name == name })
	if i < 0 {
		return "", fmt.Errorf("container %q in pod %q is not available", name, pod.Name)
	}
	status, last := all[i], terminatedID(all[i].LastTerminationState)
	terminated := terminatedID(status.State)
	switch {
	case previous && last == "":
		return "", fmt.Errorf("previous terminated container %q in pod %q not found", name, pod.Name)
	case previous:
		return last, nil
	case status.State.Running != nil:
		return status.ContainerID, nil
	case terminated != "":
		return terminated, nil
	case last != "": // the next one has not started, or never will
		return last, nil
	case status.State.Terminated != nil, status.LastTerminationState.Terminated != nil:
		return "", fmt.Errorf("container %q in pod %q is terminated", name, pod.Name)
	case status.State.Waiting == nil:
		return "", fmt.Errorf("container %q in pod %q is waiting to start - no logs yet", name, pod.Name)
	case status.State.Waiting.Reason == "ErrImagePull":
		return "", fmt.Errorf("container %q in pod %q is waiting to start: image can't be pulled", name, pod.Name)
	case status.State.Waiting.Reason == "ImagePullBackOff":
		return "", fmt.Errorf("container %q in pod %q is waiting to start: trying and failing to pull image", name, pod.Name)
	default:
		return "", fmt.Errorf("container %q in pod %q is waiting to start: %s", name, pod.Name, status.State.Waiting.Reason)
	}
}
