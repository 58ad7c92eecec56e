package pods

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Adopt takes over the Pods that an earlier keeper left on the node and returns their TaskRuns, which are to be synced, or
// forgotten where they are gone.
func (k *Keeper) Adopt(ctx context.Context, namespaces []string) ([]types.NamespacedName, error) {
	var tasks []types.NamespacedName
	for _, namespace := range namespaces {
		list, err := k.client.CoreV1().Pods(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: labelTaskRun, FieldSelector: "spec.nodeName=" + k.name,
		})
		if err != nil {
			return nil, fmt.Errorf("pods of %s: %w", namespace, err)
		}
		for i := range list.Items {
			object := &list.Items[i]
			owner := metav1.GetControllerOf(object)
			if owner == nil {
				continue
			}
			k.adopt(taskKey{namespace, owner.Name}, owner.UID, object.Name, &pod{uid: object.UID, logs: map[string]*log{}})
			tasks = append(tasks, types.NamespacedName{Namespace: namespace, Name: owner.Name})
		}
	}
	return tasks, nil
}

func (k *Keeper) adopt(key taskKey, uid types.UID, name string, p *pod) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.tasks[key] == nil {
		k.tasks[key] = &kept{uid: uid, pods: map[string]*pod{}}
	}
	k.tasks[key].pods[name] = p
}
