package kubelet

import (
	"context"
	"fmt"
	"net"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// Register makes the node's object, or makes it say where this kubelet is: the API server asks there for the logs of the
// pods whose spec.nodeName is the node's.
func (k *Kubelet) Register(ctx context.Context, client kubernetes.Interface, node string) error {
	host, text, err := net.SplitHostPort(k.addr)
	if err != nil {
		return fmt.Errorf("kubelet: address %q: %w", k.addr, err)
	}
	port, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf("kubelet: port of %q: %w", k.addr, err)
	}
	nodes := client.CoreV1().Nodes()
	object, err := nodes.Create(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{
		Name: node, Labels: map[string]string{corev1.LabelHostname: node},
	}}, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		object, err = nodes.Get(ctx, node, metav1.GetOptions{})
	}
	if err != nil {
		return fmt.Errorf("kubelet: node %s: %w", node, err)
	}
	now := metav1.NewTime(k.cfg.Clock.Now())
	object.Status.Addresses = []corev1.NodeAddress{{Type: corev1.NodeInternalIP, Address: host}}
	object.Status.DaemonEndpoints.KubeletEndpoint.Port = int32(port)
	object.Status.Conditions = []corev1.NodeCondition{{
		Type: corev1.NodeReady, Status: corev1.ConditionTrue, Reason: "KubeletReady", LastHeartbeatTime: now, LastTransitionTime: now,
	}}
	if _, err := nodes.UpdateStatus(ctx, object, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("kubelet: status of node %s: %w", node, err)
	}
	return nil
}
