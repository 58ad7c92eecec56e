package edge

import (
	"context"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	keys "hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/xds"
)

// guarded is a backend for writes as a real one is: behind the check of its
// identities. What it is sent is seen by somebody who listens.
type guarded struct {
	*httptest.Server

	mu     sync.Mutex
	heard  []*http.Request
	served int
}

func (g *guarded) start(t *testing.T, publicDir string) {
	t.Helper()
	v, err := keys.NewVerifier(keys.VerifierConfig{KeysDir: publicDir, Backend: "writes"})
	if err != nil {
		t.Fatal(err)
	}
	op := func(r *http.Request) string {
		if strings.HasSuffix(r.URL.Path, "/cancel") {
			return "cancelPipelineRun"
		}
		return "rerunPipelineRun"
	}
	behind := keys.Require(v, op, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.served++
	}))
	g.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		g.mu.Lock()
		g.heard = append(g.heard, r.Clone(context.Background()))
		g.mu.Unlock()
		behind.ServeHTTP(w, r)
	})
	g.Start()
}

func (g *guarded) last() *http.Request {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.heard[len(g.heard)-1]
}

func (g *guarded) count() int {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.served
}

// Whoever listens between the edge and a backend has an identity of a write in
// hand that is still young, and can do nothing with it.
func TestACapturedIdentityOfAWriteIsWorthNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	g := &guarded{Server: httptest.NewUnstartedServer(nil)}
	t.Cleanup(g.Close)
	e := startLimited(t, setup{keys: dir, planned: true, options: func(o *xds.Options) { o.ServePlanned = g.Listener.Addr().String() }})
	g.start(t, filepath.Join(dir, "public"))
	const target = "/v1/apps/shop/pipelineruns/a/cancel?dryRun=false"
	send := func(base, target string, header http.Header) int {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, base+target, nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header = header
		resp, err := e.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		readAll(t, resp)
		return resp.StatusCode
	}
	caller := http.Header{"Authorization": {"Bearer operator"}}
	if status := send(e.url, target, caller); status != 200 || g.count() != 1 {
		t.Fatalf("the call: %d", status)
	}
	captured := http.Header{keys.Header: g.last().Header.Values(keys.Header)}
	if len(captured[keys.Header]) != 1 {
		t.Fatal("no identity reached the backend")
	}
	for name, elsewhere := range map[string]string{
		"as it was":           target,
		"for another run":     strings.Replace(target, "/a/", "/b/", 1),
		"for another app":     strings.Replace(target, "shop", "gate-api", 1),
		"with another query":  strings.Replace(target, "false", "true", 1),
		"another operation's": strings.Replace(target, "cancel", "rerun", 1),
	} {
		if status := send(g.URL, elsewhere, captured); status != 401 {
			t.Errorf("%s, at the backend: %d", name, status)
		}
	}
	if n := g.count(); n != 1 {
		t.Errorf("the backend served %d calls", n)
	}
	// The caller's next call is another one.
	if status := send(e.url, target, caller); status != 200 || g.count() != 2 {
		t.Errorf("the next call: %d", status)
	}
}
