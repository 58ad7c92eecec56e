package telemetry_test

import (
	"context"
	"log/slog"
	"net/http"
	"os"
	"sync/atomic"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/standin/otlp"
	"hangar.io/glidepath/internal/telemetry"
)

// warnings counts what is logged. Tests that look at it are not parallel.
var warnings = new(counter)

type counter struct {
	slog.Handler
	n atomic.Int64
}

func (c *counter) Handle(context.Context, slog.Record) error { c.n.Add(1); return nil }

func (c *counter) Enabled(context.Context, slog.Level) bool { return true }

func TestMain(m *testing.M) {
	warnings.Handler = slog.DiscardHandler
	slog.SetDefault(slog.New(warnings))
	// The tests decide about proxies.
	for _, name := range []string{"HTTPS_PROXY", "https_proxy", "HTTP_PROXY", "http_proxy", "NO_PROXY", "no_proxy"} {
		_ = os.Unsetenv(name)
	}
	goleak.VerifyTestMain(m)
}

func collector(t *testing.T) *otlp.Receiver {
	t.Helper()
	r, err := otlp.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

// start gives tracing to endpoint, and the registry that its spans are counted in.
func start(t *testing.T, c telemetry.TraceConfig, client *http.Client) (*telemetry.Tracing, *prometheus.Registry) {
	t.Helper()
	reg := prometheus.NewRegistry()
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Options{TraceConfig: c, Service: "test", Metrics: reg, Client: client})
	if err != nil {
		t.Fatal(err)
	}
	return tracing, reg
}

// spans gives the counts of spans by result.
func spans(t *testing.T, reg *prometheus.Registry) map[string]int {
	t.Helper()
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]int{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			out[m.GetLabel()[0].GetValue()] = int(m.GetCounter().GetValue())
		}
	}
	return out
}

func end(t *testing.T, tracing *telemetry.Tracing, name string) {
	t.Helper()
	_, span := tracing.Start(t.Context(), name)
	span.End()
}
