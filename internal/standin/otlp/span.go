package otlp

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
)

// Span is one span as it was exported. Ids are hexadecimal digits; the values
// of attributes are their texts.
type Span struct {
	Resource map[string]string // of the process: service.name and others

	TraceID, ID string
	Parent      string // empty for the root of a trace
	TraceState  string
	Name        string
	Kind        string // internal, server, client, producer, consumer
	Failed      bool   // its status is an error
	Status      string // the status's message
	Attributes  map[string]string
	Events      []Event
	Links       []Link
	Start, End  time.Time
}

// Service names the process that made the span.
func (s Span) Service() string { return s.Resource["service.name"] }

// Event is something that happened within a span.
type Event struct {
	Name       string
	Attributes map[string]string
}

// Link points to a span that another one depends on.
type Link struct{ TraceID, SpanID string }

// spansOf reads an export, and refuses one with a span that no collector could
// place.
func spansOf(export *collectorpb.ExportTraceServiceRequest) ([]Span, error) {
	var out []Span
	for _, rs := range export.GetResourceSpans() {
		resource := texts(rs.GetResource().GetAttributes())
		for _, ss := range rs.GetScopeSpans() {
			for _, s := range ss.GetSpans() {
				if len(s.GetTraceId()) != 16 || len(s.GetSpanId()) != 8 || (len(s.GetParentSpanId()) != 0 && len(s.GetParentSpanId()) != 8) {
					return nil, fmt.Errorf("span %q has ids of the wrong length", s.GetName())
				}
				if s.GetEndTimeUnixNano() < s.GetStartTimeUnixNano() {
					return nil, fmt.Errorf("span %q ends before it begins", s.GetName())
				}
				out = append(out, spanOf(s, resource))
			}
		}
	}
	return out, nil
}

func spanOf(s *tracepb.Span, resource map[string]string) Span {
	out := Span{
		Resource: resource,
		TraceID:  hex.EncodeToString(s.GetTraceId()), ID: hex.EncodeToString(s.GetSpanId()), Parent: hex.EncodeToString(s.GetParentSpanId()),
		TraceState: s.GetTraceState(), Name: s.GetName(),
		Kind:   strings.ToLower(strings.TrimPrefix(s.GetKind().String(), "SPAN_KIND_")),
		Failed: s.GetStatus().GetCode() == tracepb.Status_STATUS_CODE_ERROR, Status: s.GetStatus().GetMessage(),
		Attributes: texts(s.GetAttributes()),
		Start:      time.Unix(0, int64(s.GetStartTimeUnixNano())), End: time.Unix(0, int64(s.GetEndTimeUnixNano())),
	}
	for _, e := range s.GetEvents() {
		out.Events = append(out.Events, Event{Name: e.GetName(), Attributes: texts(e.GetAttributes())})
	}
	for _, l := range s.GetLinks() {
		out.Links = append(out.Links, Link{TraceID: hex.EncodeToString(l.GetTraceId()), SpanID: hex.EncodeToString(l.GetSpanId())})
	}
	return out
}

func texts(attrs []*commonpb.KeyValue) map[string]string {
	out := make(map[string]string, len(attrs))
	for _, kv := range attrs {
		out[kv.GetKey()] = text(kv.GetValue())
	}
	return out
}

func text(v *commonpb.AnyValue) string {
	switch v := v.GetValue().(type) {
	case *commonpb.AnyValue_StringValue:
		return v.StringValue
	case *commonpb.AnyValue_IntValue:
		return strconv.FormatInt(v.IntValue, 10)
	case *commonpb.AnyValue_BoolValue:
		return strconv.FormatBool(v.BoolValue)
	default:
		return fmt.Sprint(v)
	}
}
