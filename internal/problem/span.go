package problem

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
)

// Record notes on the span of ctx what its call failed with. Only a 5xx makes
// it a failed span: a 4xx is what the caller asked for.
func (e *Error) Record(ctx context.Context) {
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	body := e.Body("")
	span.SetAttributes(attribute.String("glidepath.rule", body.Rule))
	// The names are those that OpenTelemetry has for an error on a span.
	span.AddEvent("exception", trace.WithAttributes(
		attribute.String("exception.type", body.Rule),
		attribute.String("exception.message", e.Error()),
	))
	if e.Status() >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, body.Message)
	}
}
