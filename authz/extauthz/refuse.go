package extauthz

import (
	"context"
	"encoding/json"
	"net/http"

	corev3 "github.com/envoyproxy/go-control-plane/envoy/config/core/v3"
	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	typev3 "github.com/envoyproxy/go-control-plane/envoy/type/v3"
	"go.opentelemetry.io/otel/trace"
	statuspb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/types/known/structpb"

	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/internal/problem"
)

// refusal is the answer to a call that is not allowed: the JSON that the caller
// reads, and what the audit line says. allow is for 405.
func refusal(d *decision.Decision, p *problem.Error, traceID, allow string) *authv3.CheckResponse {
	body := p.Body(traceID)
	code := codes.PermissionDenied
	var h []*corev3.HeaderValueOption
	if p.Status() == http.StatusUnauthorized {
		code = codes.Unauthenticated
		h = append(h, overwrite("www-authenticate", problem.Challenge(p.Rule)))
	}
	if p.Status() == http.StatusMethodNotAllowed && allow != "" {
		h = append(h, overwrite("allow", allow))
	}
	resp := denied(code, p.Status(), body, h...)
	resp.DynamicMetadata = auditFields(d, verdictDeny, field{"rule", body.Rule}, field{"error", body.Message})
	return resp
}

// denied is an answer that Envoy gives to the caller instead of a backend's.
func denied(code codes.Code, status int, body problem.Body, more ...*corev3.HeaderValueOption) *authv3.CheckResponse {
	raw, err := json.Marshal(body)
	if err != nil { // four strings always have a JSON form
		raw = nil
	}
	return &authv3.CheckResponse{
		Status: &statuspb.Status{Code: int32(code)},
		HttpResponse: &authv3.CheckResponse_DeniedResponse{DeniedResponse: &authv3.DeniedHttpResponse{
			Status: &typev3.HttpStatus{Code: typev3.StatusCode(status)},
			Headers: append([]*corev3.HeaderValueOption{
				overwrite("content-type", "application/json"),
				overwrite("cache-control", "no-store"),
			}, more...),
			Body: string(raw) + "\n",
		}},
	}
}

// The words for a decision in logs, counters and spans.
const (
	verdictAllow = "allow"
	verdictDeny  = "deny"
)

type field struct{ name, value string }

// auditFields are what the edge's audit line says of a decision. A field
// without a value is left out: Envoy would write it as an empty text.
func auditFields(d *decision.Decision, verdict string, more ...field) *structpb.Struct {
	fields := append(more, field{"decision", verdict}, field{"app", d.App}, field{"onBehalfOf", d.OnBehalfOf})
	if d.Caller != nil {
		fields = append(fields, field{"caller", d.Caller.Username})
	}
	s := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(fields))}
	for _, f := range fields {
		if f.value != "" {
			s.Fields[f.name] = structpb.NewStringValue(f.value)
		}
	}
	return s
}

func overwrite(name, value string) *corev3.HeaderValueOption {
	return &corev3.HeaderValueOption{
		Header:       &corev3.HeaderValue{Key: name, Value: value},
		AppendAction: corev3.HeaderValueOption_OVERWRITE_IF_EXISTS_OR_ADD,
	}
}

// traceID gives the trace of a call: the one that Envoy sent with the gRPC
// call. A caller's header is the second choice, for an edge without tracing.
func traceID(ctx context.Context, c *call) string {
	if sc := trace.SpanContextFromContext(ctx); sc.IsValid() {
		return sc.TraceID().String()
	}
	v, _ := c.headers.Get("traceparent")
	return problem.TraceID(v)
}
