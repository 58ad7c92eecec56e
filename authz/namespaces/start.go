package namespaces

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// Started is an Index that is current from Start to Close.
type Started struct {
	*Index
	stop  context.CancelFunc
	ended chan struct{}
}

// Start gives an index that has read the cluster's namespaces, for a command
// that needs it once. One list is asked for first, since it says why it cannot
// be had: a watch tries again for ever.
func Start(ctx context.Context, cluster *rest.Config) (*Started, error) {
	client, err := metadata.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("reading namespaces: %w", err)
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, fmt.Errorf("reading namespaces: %w", err)
	}
	x, err := NewIndex(client)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	s := &Started{Index: x, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		x.Run(ctx)
	}()
	select {
	case <-x.Synced():
		return s, nil
	case <-ctx.Done():
		s.Close()
		return nil, fmt.Errorf("reading namespaces: %w", context.Cause(ctx))
	}
}

// Close ends the watch and waits for it.
func (s *Started) Close() {
	s.stop()
	<-s.ended
}
