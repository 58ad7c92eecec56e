package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	deltav3 "github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/keepalive"
)

// Server serves the current snapshot. Its methods may be called concurrently.
type Server struct {
	cache   cachev3.SnapshotCache
	store   *Store
	log     *slog.Logger
	metrics *Metrics

	mu       sync.Mutex
	current  *Snapshot // what is served
	accepted *Snapshot // the last that an Envoy took whole
	saved    string    // the version on disk
}

// New gives a server that serves nothing yet.
func New(store *Store, metrics *Metrics, log *slog.Logger) *Server {
	return &Server{
		cache:   cachev3.NewSnapshotCache(true, everyNode{}, nil),
		store:   store,
		log:     log,
		metrics: metrics,
	}
}

// everyNode gives all Envoys the same snapshot: those that can connect to the
// socket are the edge.
type everyNode struct{}

// edgeNode is the one key in the cache.
const edgeNode = "edge"

func (everyNode) ID(*corev3.Node) string { return edgeNode }

// Publish serves a snapshot from now on, and says whether it is another one
// than before. Envoys get only those resources that differ from what they
// have.
func (s *Server) Publish(ctx context.Context, snap *Snapshot) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && s.current.version == snap.version {
		return false, nil
	}
	return true, s.serve(ctx, snap)
}

// PublishStored serves the snapshot on disk, which some Envoy once took.
func (s *Server) PublishStored(ctx context.Context) (version string, err error) {
	snap, err := s.store.Load()
	if err != nil {
		return "", err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.accepted, s.saved = snap, snap.version
	return snap.version, s.serve(ctx, snap)
}

// serve needs the lock.
func (s *Server) serve(ctx context.Context, snap *Snapshot) error {
	if err := s.cache.SetSnapshot(ctx, edgeNode, snap.cache); err != nil {
		return fmt.Errorf("publishing snapshot %s: %w", snap.version, err)
	}
	s.current = snap
	return nil
}

// Ready is nil once there is something to serve.
func (s *Server) Ready() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil {
		return errors.New("there is no configuration to serve yet")
	}
	return nil
}

// Serve answers Envoys on l, which it owns, until ctx ends.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := grpc.NewServer(
		// Envoy pings more often than the library would stand by itself.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxConcurrentStreams(16),
		grpc.ConnectionTimeout(5*time.Second),
		// Stop must not return while a stream still stores a snapshot.
		grpc.WaitForHandlers(true),
	)
	acks := newAcks(s.accept, s.reject, s.metrics)
	discoveryv3.RegisterAggregatedDiscoveryServiceServer(g, &ads{
		delta: deltav3.NewServer(ctx, s.cache, acks),
	})
	done := make(chan error, 1)
	go func() { done <- g.Serve(l) }()
	select {
	case err := <-done:
		return fmt.Errorf("serving xDS on %s: %w", l.Addr(), err)
	case <-ctx.Done():
	}
	// The streams never end by themselves, so there is nothing to wait for.
	cancel()
	g.Stop()
	<-done
	return nil
}

// accept is called when an Envoy has taken every resource of a version.
func (s *Server) accept(version string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || s.current.version != version {
		return // overtaken by a newer one
	}
	s.accepted = s.current
	if s.saved == version {
		return
	}
	if err := s.store.Save(s.current); err != nil {
		s.log.Error("the last good configuration could not be stored", "error", err)
		return
	}
	s.saved = version
	s.log.Info("Envoy took the configuration", "version", version)
}

// reject is called when an Envoy has refused a resource of a version.
func (s *Server) reject(version, typeURL, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Error("Envoy refused the configuration", "version", version, "type", typeURL, "error", detail)
	if s.accepted == nil || s.current.version != version || s.accepted.version == version {
		return
	}
	// Not the caller's context: what is served again outlives the stream on
	// which the refusal came.
	if err := s.serve(context.Background(), s.accepted); err != nil {
		s.log.Error("the last good configuration could not be served again", "error", err)
		return
	}
	s.log.Warn("serving the last good configuration again", "version", s.accepted.version)
}

// ads offers the delta protocol only, and all types on one stream: that is
// what keeps a route from arriving before its cluster.
type ads struct {
	discoveryv3.UnimplementedAggregatedDiscoveryServiceServer
	delta deltav3.Server
}

// DeltaAggregatedResources is the stream of one Envoy.
func (a *ads) DeltaAggregatedResources(stream discoveryv3.AggregatedDiscoveryService_DeltaAggregatedResourcesServer) error {
	return a.delta.DeltaStreamHandler(stream, resourcev3.AnyType)
}
