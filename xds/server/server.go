package server

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"sync"
	"time"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	discoveryv3 "github.com/envoyproxy/go-control-plane/envoy/service/discovery/v3"
	cachev3 "github.com/envoyproxy/go-control-plane/pkg/cache/v3"
	resourcev3 "github.com/envoyproxy/go-control-plane/pkg/resource/v3"
	deltav3 "github.com/envoyproxy/go-control-plane/pkg/server/delta/v3"
	"golang.org/x/net/netutil"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
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
	// behind is set while what is served is not what the files say; unproven
	// while an Envoy has refused what is served and there is nothing better.
	behind, unproven bool
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

// Publish serves a snapshot of what the files say from now on, and tells whether
// it is another one than before. Envoys get only those resources that differ
// from what they have.
func (s *Server) Publish(ctx context.Context, snap *Snapshot) (changed bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current != nil && s.current.version == snap.version {
		s.behind = false
		s.showStale()
		return false, nil
	}
	if s.current == nil {
		s.remember(snap)
	}
	if err := s.serve(ctx, snap); err != nil {
		return true, err
	}
	s.behind = false
	s.showStale()
	return true, nil
}

// showStale needs the lock, so that it cannot hide a refusal that comes at
// once.
func (s *Server) showStale() {
	stale := 0.0
	if s.behind || s.unproven {
		stale = 1
	}
	s.metrics.stale.Set(stale)
}

// KeepServing notes that what is served stays although the files say something
// else by now, until the next Publish.
func (s *Server) KeepServing() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.behind = true
	s.showStale()
}

// remember finds out whether the first snapshot is the one that an Envoy took
// before this process began. It needs the lock.
func (s *Server) remember(snap *Snapshot) {
	switch stored, err := s.store.Load(); {
	case errors.Is(err, ErrNoSnapshot):
	case err != nil:
		s.log.Warn("the stored configuration is of no use", "error", err)
	case stored.version == snap.version:
		s.accepted, s.saved = snap, snap.version
	default:
		s.accepted, s.saved = stored, stored.version
	}
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
	if err := s.serve(ctx, snap); err != nil {
		return "", err
	}
	s.behind = true
	s.showStale()
	return snap.version, nil
}

// serve needs the lock.
func (s *Server) serve(ctx context.Context, snap *Snapshot) error {
	if err := s.cache.SetSnapshot(ctx, edgeNode, snap.cache); err != nil {
		return fmt.Errorf("publishing snapshot %s: %w", snap.version, err)
	}
	s.current, s.unproven = snap, false
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

// Serve answers Envoys on l, which it owns, until ctx ends. Whoever can connect
// to it gets everything.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	return s.serveOn(ctx, l)
}

// Bounds of a listener that others than the own pod can reach.
const (
	maxRemote = 256 // connections
	// remoteAge is when a connection has to be made again, so that a client
	// whose certificate is not taken any more does not keep its stream.
	remoteAge = 30 * time.Minute
	// remoteGrace is how long its stream may go on then.
	remoteGrace = 5 * time.Second
)

// ServeTLS is Serve for a listener without TLS that this puts it on, with all
// that the configuration asks of a client. It may run beside Serve.
func (s *Server) ServeTLS(ctx context.Context, l net.Listener, config *tls.Config) error {
	return s.serveOn(ctx, netutil.LimitListener(l, maxRemote),
		grpc.Creds(credentials.NewTLS(config)),
		grpc.KeepaliveParams(keepalive.ServerParameters{
			MaxConnectionAge: remoteAge, MaxConnectionAgeGrace: remoteGrace, Time: time.Minute, Timeout: 10 * time.Second,
		}))
}

func (s *Server) serveOn(ctx context.Context, l net.Listener, options ...grpc.ServerOption) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	g := grpc.NewServer(append(options,
		// Envoy pings more often than the library would stand by itself.
		grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: 5 * time.Second, PermitWithoutStream: true}),
		grpc.MaxConcurrentStreams(16),
		grpc.ConnectionTimeout(5*time.Second),
		// Stop must not return while a stream still stores a snapshot.
		grpc.WaitForHandlers(true),
	)...)
	acks := newAcks(s, s.metrics)
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

func (s *Server) versionOf(typeURL string, resources map[string]string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || !maps.Equal(s.current.cache.GetVersionMap(typeURL), resources) {
		return "", false
	}
	return s.current.types[typeURL], true
}

// taken stores what is served once an Envoy has the whole of it.
func (s *Server) taken(versions map[string]string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.current == nil || !maps.Equal(s.current.types, versions) {
		return
	}
	s.accepted = s.current
	s.unproven = false
	s.showStale()
	if s.saved == s.current.version {
		return
	}
	if err := s.store.Save(s.current); err != nil {
		s.log.Error("the last good configuration could not be stored", "error", err)
		return
	}
	s.saved = s.current.version
	s.log.Info("Envoy took the configuration", "version", s.current.version)
}

// refused serves the last good snapshot again when it is the present one that
// an Envoy does not take.
func (s *Server) refused(typeURL, version, detail string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.log.Error("Envoy refused the configuration", "type", typeURL, "version", version, "error", detail)
	if s.current == nil || s.current.types[typeURL] != version {
		return
	}
	if s.accepted == nil || s.accepted == s.current {
		// No Envoy ever took anything, or another one took just this: there is
		// nothing better for the one that has something else now, or nothing.
		s.unproven = true
		s.showStale()
		return
	}
	// Not the caller's context: what is served again outlives the stream on
	// which the refusal came.
	if err := s.serve(context.Background(), s.accepted); err != nil {
		s.log.Error("the last good configuration could not be served again", "error", err)
		return
	}
	s.behind = true
	s.showStale()
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
