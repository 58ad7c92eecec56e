package pods

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/simulator/life"
)

// Labels that Tekton's controller sets on a Pod, besides its TaskRun's own.
const (
	labelTaskRun    = "tekton.dev/taskRun"
	labelTaskRunUID = "tekton.dev/taskRunUID"
)

// attempts are the TaskRun's attempts that have a Pod, the present one last. Tekton removes the Pod of one that was
// cancelled or timed out.
func attempts(task *life.TaskRun) []life.TaskRunStatus {
	var with []life.TaskRunStatus
	for _, status := range append(append([]life.TaskRunStatus(nil), task.Status.RetriesStatus...), task.Status) {
		switch status.Conditions.Succeeded().Reason {
		case life.ReasonTaskRunCancelled, life.ReasonTaskRunTimeout:
			continue
		}
		if status.PodName != "" && len(status.Steps) > 0 {
			with = append(with, status)
		}
	}
	return with
}

// podOf is the Pod of one attempt, as it stands.
func podOf(task *life.TaskRun, attempt life.TaskRunStatus, node string) *corev1.Pod {
	yes, no := true, false
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: attempt.PodName, Namespace: task.Namespace,
			Labels: maps.Clone(task.Labels), Annotations: map[string]string{"tekton.dev/ready": "READY"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: life.APIVersion, Kind: life.KindTaskRun, Name: task.Name, UID: task.UID, Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		Spec: corev1.PodSpec{
			NodeName: node, ServiceAccountName: task.Spec.ServiceAccountName, RestartPolicy: corev1.RestartPolicyNever,
			AutomountServiceAccountToken: &no, // no controller makes the certificate bundle that goes with it
		},
		Status: statusOf(task, attempt),
	}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	pod.Labels[labelTaskRun], pod.Labels[labelTaskRunUID] = task.Name, string(task.UID)
	pod.Labels[life.LabelManagedBy] = "tekton-pipelines"
	for _, step := range attempt.Steps {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: step.Container, Image: imageOf(attempt, step)})
	}
	return pod
}

// imageOf is what the step's task says, else one of that name.
func imageOf(attempt life.TaskRunStatus, step life.StepState) string {
	if attempt.TaskSpec != nil {
		for _, s := range attempt.TaskSpec.Steps {
			if s.Name == step.Name && s.Image != "" {
				return s.Image
			}
		}
	}
	return "registry.example/ci/" + step.Name
}

// statusOf is what a kubelet would report.
func statusOf(task *life.TaskRun, attempt life.TaskRunStatus) corev1.PodStatus {
	status := corev1.PodStatus{
		Phase: corev1.PodPending, StartTime: attempt.StartTime,
		HostIP: "127.0.0.1", PodIP: addressOf(task.UID), PodIPs: []corev1.PodIP{{IP: addressOf(task.UID)}},
	}
	ended, failed := 0, false
	for _, step := range attempt.Steps {
		c := corev1.ContainerStatus{Name: step.Container, State: step.ContainerState, Image: imageOf(attempt, step), ImageID: step.ImageID}
		switch {
		case step.Running != nil:
			status.Phase = corev1.PodRunning
			c.Ready, c.ContainerID = true, life.ContainerID(task.Namespace, attempt.PodName, step.Name)
		case step.Terminated != nil:
			ended++
			failed = failed || step.Terminated.ExitCode != 0 && step.TerminationReason != "Continued"
			c.ContainerID = step.Terminated.ContainerID
		}
		status.ContainerStatuses = append(status.ContainerStatuses, c)
	}
	if ended == len(attempt.Steps) {
		if status.Phase = corev1.PodSucceeded; failed {
			status.Phase = corev1.PodFailed
		}
	}
	return status
}

// span is when a step writes: from its turn to its end, which is zero while it runs. A step whose turn has not come, or
// that was skipped, has none.
func span(steps []life.StepState, index int) (begin, end time.Time, ok bool) {
	step := steps[index]
	if step.TerminationReason == "Skipped" {
		return begin, end, false
	}
	switch {
	case step.Terminated != nil:
		return whole(step.Terminated.StartedAt), whole(step.Terminated.FinishedAt), true
	case step.Running == nil:
		return begin, end, false
	case index == 0:
		return whole(step.Running.StartedAt), end, true
	case steps[index-1].Terminated != nil:
		return whole(steps[index-1].Terminated.FinishedAt), end, true
	default:
		return begin, end, false
	}
}

// whole is the time as a cluster keeps it, in whole seconds, so that it is the same before and after it was written there.
func whole(t metav1.Time) time.Time { return t.Truncate(time.Second) }
