package runs

import (
	"context"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/problem"
)

// maxKnown bounds the namespaces that are remembered. A cluster has fewer; past
// it all are forgotten, and asked for again.
const maxKnown = 20_000

// namespaces knows when namespaces were made. That of one UID never changes, so
// it is asked for once. It is safe for concurrent use.
type namespaces struct {
	client metadata.Getter

	mu    sync.Mutex
	known map[string]time.Time // by UID
}

func newNamespaces(cluster *rest.Config) (*namespaces, error) {
	client, err := metadata.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("reading namespaces: %w", err)
	}
	return &namespaces{client: client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces")), known: map[string]time.Time{}}, nil
}

// created says when the namespace of a scope was made. One that is no more, or
// was made again meanwhile, is not found.
func (n *namespaces) created(ctx context.Context, s calls.Scope) (time.Time, error) {
	if at, ok := n.recall(s.UID); ok {
		return at, nil
	}
	list, err := n.client.List(ctx, metav1.ListOptions{FieldSelector: "metadata.name=" + s.Namespace})
	if err != nil {
		return time.Time{}, clusterFailed(err)
	}
	for _, item := range list.Items {
		if string(item.UID) == s.UID && item.Name == s.Namespace {
			n.remember(s.UID, item.CreationTimestamp.Time)
			return item.CreationTimestamp.Time, nil
		}
	}
	return time.Time{}, problem.New(problem.NotFound, "no such app")
}

// all says when every namespace was made, by name.
func (n *namespaces) all(ctx context.Context) (map[string]time.Time, error) {
	list, err := n.client.List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, clusterFailed(err)
	}
	made := make(map[string]time.Time, len(list.Items))
	for _, item := range list.Items {
		made[item.Name] = item.CreationTimestamp.Time
	}
	return made, nil
}

func (n *namespaces) recall(uid string) (time.Time, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	at, ok := n.known[uid]
	return at, ok
}

func (n *namespaces) remember(uid string, at time.Time) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.known) >= maxKnown {
		clear(n.known)
	}
	n.known[uid] = at
}

func clusterFailed(err error) error {
	return problem.New(problem.SourceFailed, "the cluster could not be read").WithCause(err)
}
