package edge

import (
	"cmp"
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/envoy"
	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/telemetry"
	"hangar.io/glidepath/xds"
)

// edge is one edge under test.
type edge struct {
	url, addr string
	envoy     *devenv.Envoy
	authz     *fakeAuthz
	backend   *fakeBackend
	client    *http.Client
	options   xds.Options
	policy    string // the route policy's file
	workers   int    // of the next Envoy; 0 is one
	xds       *running
}

// running is an xds in this process.
type running struct {
	cancel context.CancelFunc
	done   chan error
}

// stop ends it and gives what it returned.
func (r *running) stop() error {
	r.cancel()
	return <-r.done
}

type setup struct {
	policy  string // the route policy at first; empty sets nothing
	planned bool   // serve the planned operations too, by the same backend
	alone   bool   // nothing is beside Envoy but xds: authz is away, and what it serves
	otlp    string // a collector's URL
	ratio   float64
	keys    string             // the folder of the keys of identities, where authz is the real one
	options func(*xds.Options) // changes what xds is told, last
	// beforeEnvoy is called once xds serves and before Envoy starts.
	beforeEnvoy func()
}

// start starts an edge for one test.
func start(t *testing.T, s setup) *edge {
	t.Helper()
	sockets := shortDir(t)
	dir := t.TempDir()
	e := &edge{
		addr:   port(t),
		policy: filepath.Join(dir, "policy.yaml"),
		client: newClient(t),
	}
	e.url = "http://" + e.addr
	e.backend = startBackend(t)
	if !s.alone {
		e.authz = startAuthz(t, filepath.Join(sockets, "authz.sock"))
		startBackendOn(t, filepath.Join(sockets, "authz-http.sock"), e.backend)
	}
	e.options = xds.Options{
		EdgeOptions: xds.EdgeOptions{
			Listen:          e.addr,
			Backends:        "livehub=" + e.backend.addr + ";runs=" + e.backend.addr,
			AuthzSocket:     filepath.Join(sockets, "authz.sock"),
			AuthzHTTPSocket: filepath.Join(sockets, "authz-http.sock"),
			TraceConfig:     telemetry.TraceConfig{OTLPEndpoint: s.otlp, TraceRatio: s.ratio},
		},
		Socket:        filepath.Join(sockets, "xds.sock"),
		Policy:        e.policy,
		StateDir:      filepath.Join(dir, "state"),
		MetricsListen: port(t),
		ProbeListen:   port(t),
	}
	if s.planned {
		e.options.ServePlanned = e.backend.addr
	}
	if s.options != nil {
		s.options(&e.options)
	}
	e.setPolicy(t, cmp.Or(s.policy, "version: 1\n"))
	e.startXDS(t)
	if s.beforeEnvoy != nil {
		s.beforeEnvoy()
	}
	e.startEnvoy(t, dir, filepath.Join(sockets, "admin.sock"))
	return e
}

func (e *edge) startXDS(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	e.xds = &running{cancel: cancel, done: make(chan error, 1)}
	x := e.xds
	go func() {
		err := xds.Run(ctx, e.options)
		x.done <- err
		close(x.done)
	}()
	t.Cleanup(func() {
		if err := x.stop(); err != nil {
			t.Errorf("xds: %v", err)
		}
	})
	eventually(t, "xds is ready", func() bool {
		resp, err := e.client.Get("http://" + e.options.ProbeListen + "/readyz")
		if err != nil {
			return false
		}
		_ = resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
}

func (e *edge) startEnvoy(t *testing.T, dir, admin string) {
	t.Helper()
	e.startEnvoyWith(t, dir, envoy.Bootstrap{XDSSocket: e.options.Socket, AdminSocket: admin})
}

func (e *edge) startEnvoyWith(t *testing.T, dir string, b envoy.Bootstrap) {
	t.Helper()
	file, admin := writeBootstrap(t, dir, b), b.AdminSocket
	e.envoy = devtest.Envoy(t, devenv.EnvoyConfig{Dir: dir, Bootstrap: file, Admin: admin, Concurrency: e.workers})
	eventually(t, "the edge listens", func() bool {
		c, err := net.Dial("tcp", e.addr)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}

// writeBootstrap gives the file of a bootstrap.
func writeBootstrap(t *testing.T, dir string, b envoy.Bootstrap) string {
	t.Helper()
	config, err := b.Render()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func (e *edge) setPolicy(t *testing.T, policy string) {
	t.Helper()
	// As an editor does: another file in its place.
	next := e.policy + ".next"
	if err := os.WriteFile(next, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, e.policy); err != nil {
		t.Fatal(err)
	}
}

// admin reads a page of Envoy's admin interface.
func (e *edge) admin(t *testing.T, page string) string {
	t.Helper()
	client := e.envoy.AdminClient()
	defer client.CloseIdleConnections()
	resp, err := client.Get("http://envoy" + page)
	if err != nil {
		t.Fatal(err)
	}
	return string(readAll(t, resp))
}

// shortDir is a folder whose path leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "edge")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func port(t *testing.T) string {
	t.Helper()
	p, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Release)
	return p.Addr()
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{DisableCompression: true, MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func readAll(t *testing.T, resp *http.Response) []byte {
	t.Helper()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil {
		t.Fatal(err)
	}
	return body
}

// eventually waits until ok says so, and fails the test when it never does.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	const most = 20 * time.Second
	deadline := time.NewTimer(most)
	defer deadline.Stop()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-deadline.C:
			t.Fatalf("waited %s in vain until %s", most, what)
		}
	}
}

// startFails starts an xds that is expected to say why it cannot start.
func (e *edge) startFails(t *testing.T, why string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := xds.Run(ctx, e.options); err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("xds ended with %v, want %q", err, why)
	}
}
