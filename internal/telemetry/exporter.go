package telemetry

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"golang.org/x/time/rate"
)

// exporter counts what becomes of spans and keeps quiet about a collector that
// is away: one line a minute, however many batches fail. No error leaves it, as
// the SDK hands those to a handler that is global.
type exporter struct {
	next    sdktrace.SpanExporter
	process *resource.Resource
	log     rate.Sometimes

	ended, exported, failed prometheus.Counter
}

func quiet(next sdktrace.SpanExporter, process *resource.Resource, reg prometheus.Registerer) (*exporter, error) {
	spans := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_trace_spans_total",
		Help: "Spans by what became of them: ended (all), exported, or failed. What is neither of the last two waits, or was dropped because too many waited.",
	}, []string{"result"})
	if err := reg.Register(spans); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	of := func(result string) prometheus.Counter { return spans.WithLabelValues(result) }
	return &exporter{
		next: next, process: process, log: rate.Sometimes{First: 1, Interval: time.Minute},
		ended: of("ended"), exported: of("exported"), failed: of("failed"),
	}, nil
}

// ExportSpans sends spans to the collector.
func (e *exporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	own := make([]sdktrace.ReadOnlySpan, len(spans))
	for i, s := range spans {
		own[i] = ofProcess{ReadOnlySpan: s, process: e.process}
	}
	e.note(ctx, len(spans), e.next.ExportSpans(ctx, own))
	return nil
}

// ofProcess is a span with the resource that the process gave. The SDK adds
// what OTEL_RESOURCE_ATTRIBUTES holds to each resource that it is given, and
// has no setting against it.
type ofProcess struct {
	sdktrace.ReadOnlySpan
	process *resource.Resource
}

// Resource says which process the span is of.
func (s ofProcess) Resource() *resource.Resource { return s.process }

func (e *exporter) note(ctx context.Context, spans int, err error) {
	if err == nil {
		e.exported.Add(float64(spans))
		return
	}
	e.failed.Add(float64(spans))
	e.log.Do(func() {
		slog.WarnContext(ctx, "spans are not exported; more of this is not logged for a while", "spans", spans, "error", cut(err.Error()))
	})
}

// cut bounds a text that a collector may have made.
func cut(text string) string {
	if len(text) > maxTextSize {
		return text[:maxTextSize] + "..."
	}
	return text
}

// Shutdown ends the exporter.
func (e *exporter) Shutdown(ctx context.Context) error { return e.next.Shutdown(ctx) }

// counting gives p with a count of the spans that end.
func (e *exporter) counting(p sdktrace.SpanProcessor) sdktrace.SpanProcessor {
	return counting{SpanProcessor: p, ended: e.ended}
}

type counting struct {
	sdktrace.SpanProcessor
	ended prometheus.Counter
}

func (c counting) OnEnd(s sdktrace.ReadOnlySpan) {
	if s.SpanContext().IsSampled() {
		c.ended.Inc()
	}
	c.SpanProcessor.OnEnd(s)
}
