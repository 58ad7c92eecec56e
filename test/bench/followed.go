package bench

import (
	"context"
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/standin/kubelet"
)

// followedPath is the log of a container that runs and says nothing more, for as long as the bench does.
const (
	followedName = "bench-followed"
	followedPath = "/v1/apps/gate-api/live/taskruns/" + followedName + "/logs/step-test?follow=true"
)

// fillLog makes what followedPath is about, and the node that has it. The kubelet is its caller's to stop.
func fillLog(ctx context.Context, a *devenv.APIServer) (*kubelet.Kubelet, error) {
	k, err := a.StartKubelet()
	if err != nil {
		return nil, err
	}
	if err := followed(ctx, a, k); err != nil {
		k.Stop()
		return nil, fmt.Errorf("making a log to follow: %w", err)
	}
	return k, nil
}

func followed(ctx context.Context, a *devenv.APIServer, k *kubelet.Kubelet) error {
	const node, id = "bench-node", "containerd://" + followedName
	if err := k.Register(ctx, a.Client, node); err != nil {
		return err
	}
	if err := a.EnsureServiceAccount(ctx, revokedIn, "default"); err != nil {
		return err
	}
	owner, err := runningTask(ctx, a)
	if err != nil {
		return err
	}
	no := false
	pod, err := a.Client.CoreV1().Pods(revokedIn).Create(ctx, &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: followedName, Labels: map[string]string{"tekton.dev/taskRun": followedName}, OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: corev1.PodSpec{
			NodeName: node, AutomountServiceAccountToken: &no, Containers: []corev1.Container{{Name: "step-test", Image: "none"}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	pod.Status.ContainerStatuses = []corev1.ContainerStatus{{
		Name: "step-test", ContainerID: id, State: corev1.ContainerState{Running: &corev1.ContainerStateRunning{}},
	}}
	if pod, err = a.Client.CoreV1().Pods(revokedIn).UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return err
	}
	k.SetPod(pod)
	k.NewLog(id).Append(time.Now(), []byte("a line"))
	return nil
}

// runningTask makes the TaskRun whose pod writes the log, and gives the pod's reference to it.
func runningTask(ctx context.Context, a *devenv.APIServer) (*metav1.OwnerReference, error) {
	client, err := dynamic.NewForConfig(a.Admin)
	if err != nil {
		return nil, err
	}
	taskRuns := client.Resource(schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "taskruns"}).Namespace(revokedIn)
	o, err := taskRuns.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "tekton.dev/v1", "kind": "TaskRun", "metadata": map[string]any{"name": followedName},
	}}, metav1.CreateOptions{})
	if err != nil {
		return nil, err
	}
	if err := unstructured.SetNestedField(o.Object, followedName, "status", "podName"); err != nil {
		return nil, err
	}
	if _, err := taskRuns.UpdateStatus(ctx, o, metav1.UpdateOptions{}); err != nil {
		return nil, err
	}
	return &metav1.OwnerReference{APIVersion: "tekton.dev/v1", Kind: "TaskRun", Name: followedName, UID: o.GetUID()}, nil
}
