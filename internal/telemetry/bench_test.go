package telemetry_test

import (
	"context"
	"io"
	"net/http"
	"syscall"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"

	"hangar.io/glidepath/internal/telemetry"
)

// BenchmarkSpan is all that a span costs the process that makes it, exporting
// included: cpu-us/op is of every goroutine. The network is left out.
func BenchmarkSpan(b *testing.B) {
	sent := make(chan struct{}, 1)
	tracing, err := telemetry.NewTracing(b.Context(), telemetry.Options{
		TraceConfig: everything, Service: "x", Metrics: prometheus.NewRegistry(),
		Client: &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			_, err := io.Copy(io.Discard, r.Body)
			select {
			case sent <- struct{}{}:
			default:
			}
			return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, err
		})},
	})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { tracing.Shutdown(context.Background()) })
	call := telemetry.Call{Op: "listLive", Tier: "T0", App: "gate-api", Decision: "allow", Caller: "system:serviceaccount:app-gate-api-cicd:reader"}
	began := cpu()
	b.ReportAllocs()
	for n := 1; b.Loop(); n++ {
		_, span := tracing.Start(b.Context(), "envoy.service.auth.v3.Authorization/Check")
		span.SetAttributes(call.Attributes(attribute.String("rpc.system.name", "grpc"))...)
		span.End()
		if n%512 == 0 {
			<-sent // so that none is dropped
		}
	}
	b.ReportMetric(float64((cpu()-began).Nanoseconds())/1e3/float64(b.N), "cpu-us/op")
}

// cpu is what this process has used.
func cpu() time.Duration {
	var u syscall.Rusage
	_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
