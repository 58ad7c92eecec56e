package extauthz

import (
	"context"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/grpc/metadata"

	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/internal/telemetry"
)

// spanName is the name of a check's span: the method that Envoy calls.
const spanName = "envoy.service.auth.v3.Authorization/Check"

// begin gives ctx with the trace of the call that is checked, and the span of
// the check. Envoy sends with the gRPC call the traceparent of the span that it
// has for the check itself, a child of the call's.
func (s *Server) begin(ctx context.Context) (context.Context, trace.Span) {
	return s.tracing.Start(telemetry.Join(ctx, incoming{ctx}), spanName, serverSpan)
}

var serverSpan = trace.WithSpanKind(trace.SpanKindServer)

// describe says on the span of a check what became of the call, as its audit
// line does.
func describe(span trace.Span, c *call, d *decision.Decision, verdict string) {
	if !span.IsRecording() {
		return
	}
	says := telemetry.Call{Op: c.extensions.text(opExtension), App: d.App, Decision: verdict, OnBehalfOf: d.OnBehalfOf}
	if d.Operation != nil {
		says.Tier = string(d.Operation.Tier)
	}
	if d.Caller != nil {
		says.Caller = d.Caller.Username
	}
	span.SetAttributes(says.Attributes(attribute.String("rpc.system.name", "grpc"))...)
}

// incoming reads the metadata of a gRPC call as the headers of a trace.
type incoming struct{ context.Context }

func (c incoming) Get(name string) string {
	// Two are none: which of them counts, nobody could say.
	if v := metadata.ValueFromIncomingContext(c.Context, name); len(v) == 1 {
		return v[0]
	}
	return ""
}

func (incoming) Set(string, string) {}

func (incoming) Keys() []string { return nil }
