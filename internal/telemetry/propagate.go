package telemetry

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// w3c reads and writes traceparent and tracestate (W3C Trace Context).
var w3c propagation.TextMapPropagator = propagation.TraceContext{}

// Join gives ctx with the trace that a request carries; without one, or with
// one that is malformed, it gives ctx as it is.
func Join(ctx context.Context, from propagation.TextMapCarrier) context.Context {
	return w3c.Extract(ctx, from)
}

// Detach gives life with the trace of ctx and nothing else of it: for work that
// begins for a call and may outlive it.
func Detach(life, ctx context.Context) context.Context {
	sc := trace.SpanContextFromContext(ctx)
	if !sc.IsValid() {
		return life
	}
	return trace.ContextWithSpanContext(life, sc)
}

// Link notes on the span of ctx that it waits for work that is in another
// trace: of shared work, only the call that began it has the spans.
func Link(ctx context.Context, work trace.SpanContext) {
	if span := trace.SpanFromContext(ctx); span.IsRecording() && work.IsValid() {
		span.AddLink(trace.Link{SpanContext: work})
	}
}
