package livehub

import (
	"context"
	"encoding/base64"
	"encoding/pem"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/seal"
)

// runConfig is a configuration with everything that Run reads.
func runConfig(t *testing.T, c *cluster) Config {
	t.Helper()
	dir := t.TempDir()
	cfg := testConfig
	cfg.IdentityKeysDir = c.keys.dir
	cfg.SealKey = filepath.Join(dir, "seal")
	if err := seal.GenerateKeyFile(cfg.SealKey); err != nil {
		t.Fatal(err)
	}
	// A token goes over TLS alone.
	server := httptest.NewTLSServer(c)
	t.Cleanup(server.Close)
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	cfg.Kubeconfig = filepath.Join(dir, "kubeconfig")
	kubeconfig := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
"clusters":[{"name":"c","cluster":{"server":"` + server.URL + `","certificate-authority-data":"` + base64.StdEncoding.EncodeToString(ca) + `"}}],"users":[{"name":"u","user":{"token":"own-token"}}]}`
	if err := os.WriteFile(cfg.Kubeconfig, []byte(kubeconfig), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, addr := range []*string{&cfg.Listen, &cfg.MetricsListen} {
		port, err := ports.Reserve()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(port.Release)
		*addr = port.Addr()
	}
	return cfg
}

// start runs livehub until the returned function is called, which gives Run's
// error.
func start(t *testing.T, cfg Config) (stop func() error) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- Run(ctx, cfg) }()
	t.Cleanup(cancel)
	eventually(t, "readiness", func() bool {
		select {
		case err := <-ended:
			t.Fatalf("it ended: %v", err)
		default:
		}
		status, _ := fetch(t, "http://"+cfg.Listen+"/readyz", nil)
		return status == http.StatusOK
	})
	return func() error {
		cancel()
		return <-ended
	}
}

// client keeps no connections, which would be left over.
var client = &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}

func fetch(t *testing.T, url string, header http.Header) (status int, body string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	if header != nil {
		r.Header = header
	}
	resp, err := client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(raw)
}

func TestRunServesCallsAndMetricsAndDrains(t *testing.T) {
	c := newCluster(t)
	c.addRuns(shopNS + "/a")
	cfg := runConfig(t, c)
	cfg.Redis.URL = devtest.Redis(t).URL
	stop := start(t, cfg)

	token, err := c.keys.signer.Sign(claims("listLive", aboutShop))
	if err != nil {
		t.Fatal(err)
	}
	header := http.Header{identity.Header: {token}}
	if status, body := fetch(t, "http://"+cfg.Listen+"/v1/apps/shop/live", header); status != 200 || !strings.Contains(body, `"name":"a"`) {
		t.Errorf("answers %d %s", status, body)
	}
	status, metrics := fetch(t, "http://"+cfg.MetricsListen+"/metrics", nil)
	for _, want := range []string{
		`glidepath_cache_redis_up{cache="livehub"} 1`, `glidepath_cache_fills_total{cache="livehub",outcome="ok"} 2`,
		`glidepath_api_contract_info{contract_version="1"} 1`, "go_goroutines", "process_open_fds",
	} {
		if status != 200 || !strings.Contains(metrics, want) {
			t.Errorf("status %d, no metric %s", status, want)
		}
	}
	if status, _ := fetch(t, "http://"+cfg.MetricsListen+"/v1/live", header); status != 404 {
		t.Errorf("a call to the metrics' listener answers %d", status)
	}
	if status, _ := fetch(t, "http://"+cfg.Listen+"/metrics", nil); status != 404 {
		t.Errorf("metrics on the calls' listener answer %d", status)
	}

	// A call under way is answered although the process has been told to end.
	gate := make(chan struct{})
	c.fail(func(w http.ResponseWriter, r *http.Request) {
		_, resource, namespace := c.check(r)
		<-gate
		c.page(w, r.URL.Query(), resource, namespace)
	})
	if token, err = c.keys.signer.Sign(claims("listLiveTaskRuns")); err != nil {
		t.Fatal(err)
	}
	for range len(c.arrived) {
		<-c.arrived
	}
	last := make(chan string)
	go func() {
		_, body := fetch(t, "http://"+cfg.Listen+"/v1/live/taskruns?pipelineRuns=x", http.Header{identity.Header: {token}})
		last <- body
	}()
	<-c.arrived
	ended := make(chan error)
	go func() { ended <- stop() }()
	eventually(t, "the listener to close", func() bool {
		conn, err := net.Dial("tcp", cfg.Listen)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	close(gate)
	if body := <-last; body != `{"taskRuns":[]}` {
		t.Errorf("the call under way got %s", body)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ended with %v", err)
	}
}

func TestRunSaysWhatKeepsItFromStarting(t *testing.T) {
	c := newCluster(t)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, tc := range map[string]struct {
		change func(*Config)
		says   string
	}{
		"a fault in the configuration": {func(c *Config) { c.Lists = 0 }, "--lists"},
		"no identity keys":             {func(c *Config) { c.IdentityKeysDir = t.TempDir() }, "identity key"},
		"no seal key":                  {func(c *Config) { c.SealKey += "x" }, "seal key"},
		"no kubeconfig":                {func(c *Config) { c.Kubeconfig += "x" }, "API server"},
		"an address in use":            {func(c *Config) { c.Listen = taken.Addr().String() }, taken.Addr().String()},
		"a metrics' address in use":    {func(c *Config) { c.MetricsListen = taken.Addr().String() }, taken.Addr().String()},
	} {
		t.Run(name, func(t *testing.T) {
			cfg := runConfig(t, c)
			tc.change(&cfg)
			if err := Run(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), tc.says) {
				t.Errorf("it says %v", err)
			}
		})
	}
}
