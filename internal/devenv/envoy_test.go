package devenv_test

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/devenv/ports"
)

const staticEnvoy = `
admin: {address: {pipe: {path: %q}}}
static_resources:
  listeners:
  - address: {socket_address: {address: 127.0.0.1, port_value: %d}}
    filter_chains:
    - filters:
      - name: envoy.filters.network.http_connection_manager
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
          stat_prefix: test
          access_log:
          - name: stdout
            typed_config:
              "@type": type.googleapis.com/envoy.extensions.access_loggers.stream.v3.StdoutAccessLog
              log_format: {text_format_source: {inline_string: "%%REQ(:PATH)%%\n"}}
          http_filters:
          - name: envoy.filters.http.router
            typed_config: {"@type": type.googleapis.com/envoy.extensions.filters.http.router.v3.Router}
          route_config:
            virtual_hosts:
            - name: all
              domains: ["*"]
              routes: [{match: {prefix: /}, direct_response: {status: 200, body: {inline_string: %q}}}]
`

func TestTwoEnvoysRunSideBySideEachWithItsOwnLog(t *testing.T) {
	for _, name := range []string{"first", "second"} {
		port, err := ports.Reserve()
		must(t, err)
		t.Cleanup(port.Release)
		dir := shortDir(t)
		cfg := devenv.EnvoyConfig{Dir: dir, Bootstrap: filepath.Join(dir, "envoy.yaml"), Admin: filepath.Join(dir, "admin.sock")}
		must(t, os.WriteFile(cfg.Bootstrap, fmt.Appendf(nil, staticEnvoy, cfg.Admin, port.Number, name), 0o600))
		must(t, devenv.ValidateEnvoy(t.Context(), cfg.Bootstrap))
		e := devtest.Envoy(t, cfg)
		if got := get(t, "http://"+port.Addr()+"/at-"+name); got != name {
			t.Errorf("%s answers %q", name, got)
		}
		eventually(t, "the call is in the access log", func() bool {
			log, err := os.ReadFile(e.AccessLog)
			return err == nil && string(log) == "/at-"+name+"\n"
		})
	}
}

func TestEnvoyItselfSaysWhatIsWrongWithAConfiguration(t *testing.T) {
	file := filepath.Join(t.TempDir(), "envoy.yaml")
	must(t, os.WriteFile(file, []byte("static_resources: {no_such_field: 1}\n"), 0o600))
	err := devenv.ValidateEnvoy(t.Context(), file)
	if err == nil || !strings.Contains(err.Error(), "no_such_field") {
		t.Errorf("got %v, want Envoy's words about no_such_field", err)
	}
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(url)
	must(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	must(t, err)
	return string(body)
}
