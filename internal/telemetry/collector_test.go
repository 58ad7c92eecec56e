package telemetry_test

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/standin/otlp"
	"hangar.io/glidepath/internal/standin/tunnel"
	"hangar.io/glidepath/internal/telemetry"
)

// away is a name that no resolver knows: only a proxy leads there.
const away = "collector.glidepath.invalid"

// secure serves r over TLS, for the name away and for 127.0.0.1, and gives its
// address and a file with the authority.
func secure(t *testing.T, r *otlp.Receiver) (addr, caFile string) {
	t.Helper()
	ca, err := pki.NewAuthority("collector-ca")
	if err != nil {
		t.Fatal(err)
	}
	local := httptest.NewUnstartedServer(r)
	subject := pki.Subject{Name: pkix.Name{CommonName: "collector"}, DNS: []string{away}, IPs: pki.Loopback("").IPs}
	pair, err := ca.Issue(subject)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := pair.TLS()
	if err != nil {
		t.Fatal(err)
	}
	local.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	local.StartTLS()
	t.Cleanup(local.Close)
	caFile = filepath.Join(t.TempDir(), "ca.crt")
	if err := os.WriteFile(caFile, ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	return local.Listener.Addr().String(), caFile
}

func TestACollectorOfAPrivateAuthorityIsReachedThroughTheProxy(t *testing.T) {
	r := collector(t)
	addr, trusted := secure(t, r)
	_, another := secure(t, r)
	proxy, err := tunnel.Start(tunnel.Config{Hosts: map[string]string{away + ":443": addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Stop()
	t.Setenv("HTTPS_PROXY", "http://"+proxy.Addr)
	for name, tt := range map[string]struct {
		file string
		want string
	}{
		"whose authority is given":   {trusted, "exported"},
		"of another authority":       {another, "failed"},
		"that the system's know not": {"", "failed"},
	} {
		t.Run(name, func(t *testing.T) {
			tracing, reg := start(t, telemetry.TraceConfig{OTLPEndpoint: "https://" + away, OTLPCAFile: tt.file, TraceRatio: 1}, nil)
			end(t, tracing, name)
			tracing.Shutdown(t.Context())
			if got := spans(t, reg); got[tt.want] != 1 || got["ended"] != 1 {
				t.Errorf("the span is counted as %v", got)
			}
		})
	}
	if got := r.Spans(); len(got) != 1 || got[0].Name != "whose authority is given" {
		t.Errorf("the collector has %+v", got)
	}
	if got := proxy.Targets(); len(got) != 3 {
		t.Errorf("the proxy was asked for %v", got)
	}
}

func TestAFileOfAuthoritiesThatCannotBeUsedEndsTheStart(t *testing.T) {
	for name, content := range map[string]*string{"that is not there": nil, "without a certificate": new(string)} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "ca.crt")
			if content != nil {
				if err := os.WriteFile(file, []byte(*content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			o := telemetry.Options{
				TraceConfig: telemetry.TraceConfig{OTLPEndpoint: "https://" + away, OTLPCAFile: file, TraceRatio: 1}, Service: "test", Metrics: telemetry.NewRegistry(),
			}
			if _, err := telemetry.NewTracing(t.Context(), o); err == nil || !strings.Contains(err.Error(), "the OTLP collector") {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestNoOtherSettingOfTheEnvironmentHasAnEffect(t *testing.T) {
	r := collector(t)
	var headers http.Header
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		headers = req.Header.Clone()
		r.ServeHTTP(w, req)
	}))
	defer front.Close()
	for name, value := range map[string]string{
		"OTEL_RESOURCE_ATTRIBUTES":              "service.name=other,team=secret,host.name=other",
		"OTEL_SERVICE_NAME":                     "other",
		"OTEL_EXPORTER_OTLP_HEADERS":            "x-secret=secret",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS":     "x-secret=secret",
		"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT":    "http://127.0.0.1:1/",
		"OTEL_EXPORTER_OTLP_COMPRESSION":        "none",
		"OTEL_TRACES_SAMPLER":                   "always_off",
		"OTEL_BSP_MAX_QUEUE_SIZE":               "0",
		"OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT":       "0",
		"OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT":     "0",
		"OTEL_EXPORTER_OTLP_TRACES_TIMEOUT":     "1",
		"OTEL_GO_X_OBSERVABILITY":               "true",
		"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL":    "grpc",
		"OTEL_EXPORTER_OTLP_TRACES_INSECURE":    "false",
		"OTEL_TRACES_SAMPLER_ARG":               "0",
		"OTEL_BSP_MAX_EXPORT_BATCH_SIZE":        "0",
		"OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "none",
	} {
		t.Setenv(name, value)
	}
	tracing, _ := start(t, telemetry.TraceConfig{OTLPEndpoint: front.URL, TraceRatio: 1}, nil)
	end(t, tracing, "call")
	tracing.Shutdown(t.Context())
	got := r.Spans()
	if len(got) != 1 || got[0].Service() != "test" {
		t.Fatalf("the collector has %+v", got)
	}
	for name, value := range got[0].Resource {
		if name == "team" || value == "other" {
			t.Errorf("%s is %q", name, value)
		}
	}
	if headers.Get("X-Secret") != "" || headers.Get("Content-Encoding") != "gzip" {
		t.Errorf("sent with %v", headers)
	}
}
