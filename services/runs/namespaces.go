package runs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
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

	counting chan struct{} // holds a token while the last census is looked at or taken
	last     *census
}

// censusAge is for how long a census counts, as live lists do. While the cluster
// cannot be read it counts for as long as a list does.
const censusAge = 2 * time.Second

// census is what there was of namespaces at a time.
type census struct {
	at   time.Time
	made map[string]time.Time // when each was, by name
	apps string               // is another when an app comes, goes, or is made again
}

func newNamespaces(cluster *rest.Config) (*namespaces, error) {
	client, err := metadata.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("reading namespaces: %w", err)
	}
	return namespacesOf(client.Resource(corev1.SchemeGroupVersion.WithResource("namespaces"))), nil
}

func namespacesOf(client metadata.Getter) *namespaces {
	return &namespaces{client: client, known: map[string]time.Time{}, counting: make(chan struct{}, 1)}
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

// census says what namespaces there are. Callers who come at once share one.
func (n *namespaces) census(ctx context.Context) (*census, error) {
	select {
	case n.counting <- struct{}{}:
		defer func() { <-n.counting }()
	case <-ctx.Done():
		return nil, clusterFailed(ctx.Err())
	}
	if n.last != nil && time.Since(n.last.at) < censusAge {
		return n.last, nil
	}
	at := time.Now()
	list, err := n.client.List(ctx, metav1.ListOptions{})
	switch {
	case err == nil:
		n.last = count(at, list.Items)
	case n.last == nil || time.Since(n.last.at) >= listAge:
		return nil, clusterFailed(err)
	}
	return n.last, nil
}

func count(at time.Time, items []metav1.PartialObjectMetadata) *census {
	c := &census{at: at, made: make(map[string]time.Time, len(items))}
	var apps []string
	for _, item := range items {
		c.made[item.Name] = item.CreationTimestamp.Time
		if appOf(item.Name) != "" {
			apps = append(apps, item.Name+"="+string(item.UID))
		}
	}
	slices.Sort(apps)
	digest := sha256.Sum256([]byte(strings.Join(apps, "\n")))
	c.apps = hex.EncodeToString(digest[:16])
	return c
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
