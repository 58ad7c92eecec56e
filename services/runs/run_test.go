package runs

import (
	"context"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/seal"
)

// runConfig is a configuration of a process that reads its runs at an archive and
// lists namespaces at a cluster.
func runConfig(t *testing.T, archive, cluster string) Config {
	t.Helper()
	dir := t.TempDir()
	file := func(name string) string { return filepath.Join(dir, name) }
	if err := identity.GenerateKeyPair(file("identity.pem"), file("public")); err != nil {
		t.Fatal(err)
	}
	if err := seal.GenerateKeyFile(file("seal")); err != nil {
		t.Fatal(err)
	}
	kubeconfig := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"` + cluster + `"}}],"users":[{"name":"u","user":{}}]}`
	if err := os.WriteFile(file("kubeconfig"), []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	listen, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(listen.Release)
	cfg, err := parse(t, nil, "--listen="+listen.Addr(), "--metrics-listen=127.0.0.1:0", "--kubeconfig="+file("kubeconfig"),
		"--identity-keys-dir="+file("public"), "--seal-key="+file("seal"), "--results-url="+archive)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// rule: R048
func TestAProcessIsReadyWhileItWarms(t *testing.T) {
	asked, gate := make(chan string, 1), make(chan struct{})
	archive := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case asked <- r.URL.Path:
		default:
		}
		select { // as if it were slow
		case <-gate:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(archive.Close)
	t.Cleanup(func() { close(gate) })
	cluster := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet || r.URL.Path != "/api/v1/namespaces" || r.URL.Query().Has("watch") {
			t.Errorf("the cluster is asked for %s %s", r.Method, r.URL)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadataList","metadata":{},"items":[
			{"metadata":{"name":"app-shop-cicd","uid":"shop-uid","creationTimestamp":"2026-01-01T00:00:00Z"}}]}`))
	}))
	t.Cleanup(cluster.Close)
	cfg := runConfig(t, archive.URL, cluster.URL)
	ctx, stop := context.WithCancel(t.Context())
	var process sync.WaitGroup
	process.Go(func() {
		if err := Run(ctx, cfg); err != nil {
			t.Error(err)
		}
	})
	defer process.Wait()
	defer stop()
	select {
	case path := <-asked: // the warming is held from here on
		if want := "/apis/results.tekton.dev/v1alpha2/parents/app-shop-cicd/results/-/records"; path != want {
			t.Errorf("the archive is asked for %s", path)
		}
	case <-time.After(time.Minute):
		t.Fatal("it does not warm")
	}
	for end := time.Now().Add(time.Minute); !ready(t, cfg.Listen); {
		if time.Now().After(end) {
			t.Fatal("it is not ready while it warms")
		}
	}
}

func ready(t *testing.T, addr string) bool {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+addr+"/readyz", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
	if err != nil {
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
