package problem

import (
	"context"
	"net/http"
	"strings"

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
		attribute.String("exception.message", cut(e.Error())),
	))
	if e.Status() >= http.StatusInternalServerError {
		span.SetStatus(codes.Error, body.Message)
	}
}

// maxMessage bounds the bytes of a message: a cause can hold what a server
// answered, and the SDK bounds the attributes of a span but not of an event.
const maxMessage = 1024

func cut(text string) string {
	// What is no UTF-8, half a character included, would spoil the whole export.
	if len(text) <= maxMessage {
		return strings.ToValidUTF8(text, "?")
	}
	return strings.ToValidUTF8(text[:maxMessage], "?") + "..."
}
