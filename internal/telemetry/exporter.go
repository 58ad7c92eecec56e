package telemetry

import (
	"bytes"
	"compress/gzip"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"golang.org/x/time/rate"
)

// exporter sends batches of spans, counts what becomes of spans, and keeps
// quiet about a collector that is away: one line a minute, however many batches
// fail.
type exporter struct {
	client  otlptrace.Client
	process *resourcepb.Resource
	log     rate.Sometimes

	ended, exported, failed prometheus.Counter
}

// newExporter gives an exporter that takes no setting from the environment
// behind the process's back: each one that the library knows is set here.
func newExporter(ctx context.Context, endpoint string, client *http.Client, process []attribute.KeyValue, reg prometheus.Registerer) (*exporter, error) {
	to, err := tracesURL(endpoint)
	if err != nil {
		return nil, err
	}
	compressing := *client
	compressing.Transport = &gzipped{base: client.Transport}
	next := otlptracehttp.NewClient(
		otlptracehttp.WithEndpointURL(to),
		otlptracehttp.WithHTTPClient(&compressing),
		otlptracehttp.WithHeaders(map[string]string{}),
		otlptracehttp.WithCompression(otlptracehttp.NoCompression), // gzipped does
		otlptracehttp.WithTimeout(exportTime),
		otlptracehttp.WithRetry(otlptracehttp.RetryConfig{
			Enabled: true, InitialInterval: 500 * time.Millisecond, MaxInterval: exportTime, MaxElapsedTime: exportTime,
		}),
	)
	if err := next.Start(ctx); err != nil {
		return nil, err
	}
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_trace_spans_total",
		Help: "Spans by what became of them: ended (all), exported, or failed. What is neither of the last two waits, or was dropped because too many waited.",
	}, []string{"result"})
	if err := reg.Register(spans); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	of := func(result string) prometheus.Counter { return spans.WithLabelValues(result) }
	return &exporter{
		client: next, process: resourceOf(process), log: rate.Sometimes{First: 1, Interval: time.Minute},
		ended: of("ended"), exported: of("exported"), failed: of("failed"),
	}, nil
}

// resourceOf says which process the spans are of. The SDK's resource would have
// what OTEL_RESOURCE_ATTRIBUTES holds too, and there is no setting against it.
func resourceOf(process []attribute.KeyValue) *resourcepb.Resource {
	r := new(resourcepb.Resource)
	for _, a := range process {
		r.Attributes = append(r.Attributes, &commonpb.KeyValue{
			Key: string(a.Key), Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: a.Value.AsString()}},
		})
	}
	return r
}

// send sends one batch. Its spans are encoded already: they stand in their
// message as fields that it does not know, which go out as they are.
func (e *exporter) send(ctx context.Context, b batch) {
	ctx, cancel := context.WithTimeout(ctx, exportTime)
	defer cancel()
	spans := &tracepb.ScopeSpans{Scope: &commonpb.InstrumentationScope{Name: scope}}
	spans.ProtoReflect().SetUnknown(b.raw)
	err := e.client.UploadTraces(ctx, []*tracepb.ResourceSpans{{Resource: e.process, ScopeSpans: []*tracepb.ScopeSpans{spans}}})
	if err == nil {
		e.exported.Add(float64(b.spans))
		return
	}
	e.failed.Add(float64(b.spans))
	e.log.Do(func() {
		slog.WarnContext(ctx, "spans are not exported; more of this is not logged for a while", "spans", b.spans, "error", cut(err.Error()))
	})
}

// cut bounds a text that a collector may have made.
func cut(text string) string {
	if len(text) > maxTextSize {
		return text[:maxTextSize] + "..."
	}
	return text
}

// gzipped compresses what is sent, with as little work as gzip allows: spans
// repeat each other so much that more of it saves little.
type gzipped struct {
	base http.RoundTripper
	pool sync.Pool
}

// RoundTrip sends one request.
func (g *gzipped) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := g.compress(r.Body)
	if err != nil {
		return nil, fmt.Errorf("compressing spans: %w", err)
	}
	r = r.Clone(r.Context())
	r.Header.Set("Content-Encoding", "gzip")
	r.Body, r.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	return g.base.RoundTrip(r)
}

func (g *gzipped) compress(body io.ReadCloser) (_ []byte, err error) {
	defer func() { _ = body.Close() }()
	var out bytes.Buffer
	w, ok := g.pool.Get().(*gzip.Writer)
	if ok {
		w.Reset(&out)
	} else if w, err = gzip.NewWriterLevel(&out, gzip.BestSpeed); err != nil {
		return nil, err
	}
	if _, err := io.Copy(w, body); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	g.pool.Put(w)
	return out.Bytes(), nil
}
