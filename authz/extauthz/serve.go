package extauthz

import (
	"context"
	"fmt"
	"net"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/keepalive"

	"hangar.io/glidepath/internal/lifecycle"
)

const (
	// maxCheckBytes bounds a CheckRequest: the request's headers, which Envoy
	// bounds at less than half of this, and no body.
	maxCheckBytes = 256 << 10
	// maxChecks bounds the checks under way on one of Envoy's connections.
	maxChecks = 1024
	// streamWorkers are goroutines that answer one check after the other, as a
	// new one would have to grow its stack each time. Checks that find none
	// free get one of their own.
	streamWorkers = 64
	// minPing is how often Envoy may probe an idle connection.
	minPing = 5 * time.Second
)

// Serve makes a task that answers checks on l, and the gRPC health service,
// which says SERVING once ready is closed. It owns l. When its context ends it
// finishes the checks under way.
func (s *Server) Serve(l net.Listener, ready <-chan struct{}) lifecycle.Task {
	return func(ctx context.Context) error {
		probe := health.NewServer()
		setServing(probe, healthpb.HealthCheckResponse_NOT_SERVING)
		srv := grpc.NewServer(
			grpc.MaxRecvMsgSize(maxCheckBytes),
			grpc.MaxConcurrentStreams(maxChecks),
			grpc.WaitForHandlers(true),
			grpc.ForceServerCodecV2(newCodec()),
			grpc.NumStreamWorkers(streamWorkers),
			grpc.KeepaliveEnforcementPolicy(keepalive.EnforcementPolicy{MinTime: minPing, PermitWithoutStream: true}),
		)
		srv.RegisterService(&service, s)
		healthpb.RegisterHealthServer(srv, probe)
		done := make(chan error, 1)
		go func() { done <- srv.Serve(l) }()
		for {
			select {
			case err := <-done:
				return fmt.Errorf("serving checks on %s: %w", l.Addr(), err)
			case <-ready:
				setServing(probe, healthpb.HealthCheckResponse_SERVING)
				ready = nil
			case <-ctx.Done():
				probe.Shutdown()
				stop(srv)
				<-done
				return nil
			}
		}
	}
}

func setServing(probe *health.Server, status healthpb.HealthCheckResponse_ServingStatus) {
	probe.SetServingStatus("", status)
	probe.SetServingStatus(authv3.Authorization_ServiceDesc.ServiceName, status)
}

// stop lets the checks under way finish. Each is bounded by its own deadline;
// only a health watch can last longer, and is cut off.
func stop(srv *grpc.Server) {
	ended := make(chan struct{})
	go func() {
		srv.GracefulStop()
		close(ended)
	}()
	t := time.NewTimer(lifecycle.DrainTime)
	defer t.Stop()
	select {
	case <-ended:
	case <-t.C:
		srv.Stop()
		<-ended
	}
}
