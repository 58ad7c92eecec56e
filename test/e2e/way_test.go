package e2e_test

import (
	"context"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/devenv/ports"
)

// way is one of the ways in to the gateway.
type way struct {
	name, base string
	client     *http.Client
	// host is what calls name as the host; empty is that of base.
	host string
	// carry makes of a call to the Service one that comes this way; nil changes
	// nothing.
	carry func(*http.Request)
}

// service is the way of what runs in the cluster.
func service() way { return way{name: "the Service", base: gw.URL, client: client} }

// serviceOf is service for another gateway than that of all tests.
func serviceOf(g *devenv.Gateway) way {
	if g == nil {
		return service()
	}
	return way{name: "the Service", base: g.URL, client: client}
}

// peopleRoute is where the cluster's Gateway leads people to.
func peopleRoute() way {
	return way{name: "the route for people", base: "http://" + gw.Edges[0].PeopleAddr, host: devenv.PeopleHost, client: client}
}

// serviceProxy is the way of what is outside the cluster. The API server is
// called as a caller who may do nothing but use the proxy, and the caller's own
// token is sent in the header that the proxy leaves alone.
func serviceProxy(t *testing.T) way {
	t.Helper()
	base, proxied := throughServiceProxy(t)
	grantProxy(t, "stranger")
	return way{name: "the service proxy", base: base, client: proxied, carry: func(r *http.Request) {
		if inner, sent := r.Header["Authorization"]; sent {
			r.Header["X-Glidepath-Authorization"] = inner
		}
		r.Header.Set("Authorization", "Bearer "+tokens["stranger"])
	}}
}

// clusterGateway starts an Envoy that stands for the cluster's Gateway, in front
// of the route for people: one way with the HTTPRoute that belongs there, one
// with a route that lets everything through.
func clusterGateway(t *testing.T) (narrow, wide way) {
	t.Helper()
	dir, sockets := t.TempDir(), shortDir(t)
	free := func() *ports.Port {
		p, err := ports.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(p.Release)
		return p
	}
	n, w := free(), free()
	portOf := func(addr string) string {
		_, port, err := net.SplitHostPort(addr)
		if err != nil {
			t.Fatal(err)
		}
		return port
	}
	raw, err := os.ReadFile(filepath.Join("testdata", "gateway.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	admin, file := filepath.Join(sockets, "admin.sock"), filepath.Join(dir, "gateway.yaml")
	config := strings.NewReplacer(
		"ADMIN", admin, "NARROW", portOf(n.Addr()), "WIDE", portOf(w.Addr()), "EDGE", portOf(gw.Edges[0].PeopleAddr), "HOST", devenv.PeopleHost,
	).Replace(string(raw))
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	devtest.Envoy(t, devenv.EnvoyConfig{Dir: dir, Bootstrap: file, Admin: admin})
	return way{name: "the Gateway", base: "http://" + n.Addr(), host: devenv.PeopleHost, client: client},
		way{name: "a Gateway that lets everything through", base: "http://" + w.Addr(), host: devenv.PeopleHost, client: client}
}

// shortDir is a folder whose path leaves room for the name of a socket.
func shortDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "e2e")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// send makes a call this way. Of a stream it reads the beginning of the answer.
func (w way) send(t *testing.T, stream bool, method, path string, changes ...change) answer {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, w.base+path, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	if w.host != "" {
		req.Host = w.host
	}
	// What is compared has one encoding on every way: the proxy asks for gzip
	// where the caller asks for nothing.
	req.Header.Set("Accept-Encoding", "identity")
	for _, c := range changes {
		c(req)
	}
	if w.carry != nil {
		w.carry(req)
	}
	res, err := w.client.Do(req)
	if err != nil {
		t.Fatalf("%s: %s %s: %v", w.name, method, path, err)
	}
	defer func() { _ = res.Body.Close() }()
	a := answer{status: res.StatusCode, header: res.Header}
	if stream && res.StatusCode == http.StatusOK {
		return a
	}
	if a.body, err = io.ReadAll(io.LimitReader(res.Body, 64<<20)); err != nil {
		t.Fatalf("%s: %s %s: %v", w.name, method, path, err)
	}
	return a
}
