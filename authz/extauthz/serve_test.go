package extauthz_test

import (
	"context"
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"hangar.io/glidepath/authz/decision"
)

// serve starts e on a socket and gives a connection to it, and a function that
// ends it and waits.
func serve(t *testing.T, e *edge, ready <-chan struct{}) (conn *grpc.ClientConn, end func() error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "authz.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- e.Serve(l, ready)(ctx) }()
	conn, err = grpc.NewClient("unix://"+path, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	stopped := false
	end = func() error {
		if stopped {
			return nil
		}
		stopped = true
		cancel()
		select {
		case err := <-ended:
			return err
		case <-time.After(30 * time.Second):
			t.Fatal("it does not end")
			return nil
		}
	}
	t.Cleanup(func() {
		_ = conn.Close()
		if err := end(); err != nil {
			t.Error(err)
		}
	})
	return conn, end
}

func TestChecksAreAnsweredOnTheSocket(t *testing.T) {
	e := newEdge(t, allowing(caller(t, "reader")))
	conn, _ := serve(t, e, nil)
	resp, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), request("listLive", "GET", "/v1/apps/shop/live", nil))
	if err != nil {
		t.Fatal(err)
	}
	if c := e.claims(t, resp, "livehub"); c.Subject != "reader" {
		t.Errorf("got %+v", c)
	}
}

func TestACheckThatIsTooLargeIsNotRead(t *testing.T) {
	conn, _ := serve(t, newEdge(t, allowing(caller(t, "reader"))), nil)
	req := request("listLive", "GET", "/v1/apps/shop/live", map[string]string{"x": strings.Repeat("a", 300<<10)})
	_, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), req)
	if status.Code(err) != codes.ResourceExhausted {
		t.Errorf("got %v", err)
	}
}

func TestTheHealthServiceFollowsReadiness(t *testing.T) {
	ready := make(chan struct{})
	conn, _ := serve(t, newEdge(t, allowing(nil)), ready)
	client := healthpb.NewHealthClient(conn)
	const service = "envoy.service.auth.v3.Authorization"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	w, err := client.Watch(ctx, &healthpb.HealthCheckRequest{Service: service})
	if err != nil {
		t.Fatal(err)
	}
	if r, err := w.Recv(); err != nil || r.GetStatus() != healthpb.HealthCheckResponse_NOT_SERVING {
		t.Fatalf("before it is ready: %v %v", r, err)
	}
	close(ready)
	if r, err := w.Recv(); err != nil || r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("once it is ready: %v %v", r, err)
	}
	if r, err := client.Check(ctx, &healthpb.HealthCheckRequest{}); err != nil || r.GetStatus() != healthpb.HealthCheckResponse_SERVING {
		t.Errorf("the server as a whole: %v %v", r, err)
	}
}

func TestChecksUnderWayAreAnsweredBeforeTheEnd(t *testing.T) {
	entered, release := make(chan struct{}), make(chan struct{})
	reader := allowing(caller(t, "reader"))
	e := newEdge(t, decider(func(r decision.Request) decision.Decision {
		close(entered)
		<-release
		return reader.Decide(context.WithoutCancel(t.Context()), r)
	}))
	conn, end := serve(t, e, nil)
	result := make(chan error, 1)
	go func() {
		resp, err := authv3.NewAuthorizationClient(conn).Check(t.Context(), request("listLive", "GET", "/v1/apps/shop/live", nil))
		if err == nil && resp.GetOkResponse() == nil {
			t.Errorf("refused: %v", resp)
		}
		result <- err
	}()
	<-entered
	ended := make(chan error, 1)
	go func() { ended <- end() }()
	close(release)
	if err := <-result; err != nil {
		t.Errorf("the check under way: %v", err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
