package telemetry_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	"hangar.io/glidepath/internal/telemetry"
)

// messages takes what the SDK's exporter makes of spans.
type messages struct{ spans *[]*tracepb.Span }

func (messages) Start(context.Context) error { return nil }

func (messages) Stop(context.Context) error { return nil }

func (m messages) UploadTraces(_ context.Context, all []*tracepb.ResourceSpans) error {
	for _, r := range all {
		for _, s := range r.GetScopeSpans() {
			*m.spans = append(*m.spans, s.GetSpans()...)
		}
	}
	return nil
}

func theirs(t *testing.T, s sdktrace.ReadOnlySpan) *tracepb.Span {
	t.Helper()
	var spans []*tracepb.Span
	e, err := otlptrace.New(t.Context(), messages{&spans})
	if err != nil {
		t.Fatal(err)
	}
	if err := e.ExportSpans(t.Context(), []sdktrace.ReadOnlySpan{s}); err != nil || len(spans) != 1 {
		t.Fatalf("%d spans, %v", len(spans), err)
	}
	return spans[0]
}

func ours(t *testing.T, s sdktrace.ReadOnlySpan) *tracepb.Span {
	t.Helper()
	var all tracepb.ScopeSpans
	if err := proto.Unmarshal(telemetry.AppendSpan(nil, s), &all); err != nil {
		t.Fatal(err)
	}
	if len(all.GetSpans()) != 1 || len(all.ProtoReflect().GetUnknown()) != 0 {
		t.Fatalf("got %v", &all)
	}
	return all.GetSpans()[0]
}

func spanContext(t *testing.T, id byte, remote bool) trace.SpanContext {
	t.Helper()
	state, err := trace.ParseTraceState("vendor=1,other=2")
	if err != nil {
		t.Fatal(err)
	}
	return trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1, 2, id}, SpanID: trace.SpanID{3, id}, TraceFlags: trace.FlagsSampled, TraceState: state, Remote: remote,
	})
}

func TestASpanIsEncodedAsTheSDKsExporterEncodesIt(t *testing.T) {
	begin := time.Date(2026, 11, 29, 10, 0, 0, 7, time.UTC)
	attributes := []attribute.KeyValue{
		attribute.String("text", "a"), attribute.String("empty", ""), attribute.String("long", strings.Repeat("é", 5000)),
		attribute.Bool("yes", true), attribute.Bool("no", false), attribute.Int("zero", 0), attribute.Int64("least", math.MinInt64),
		attribute.Float64("pi", math.Pi), attribute.StringSlice("list", []string{"a", "", strings.Repeat("b", 200)}), attribute.StringSlice("none", nil),
	}
	whole := tracetest.SpanStub{
		Name: "listLive", SpanContext: spanContext(t, 1, false), Parent: spanContext(t, 2, true), SpanKind: trace.SpanKindServer,
		StartTime: begin, EndTime: begin.Add(time.Millisecond), Attributes: attributes,
		Events: []sdktrace.Event{
			{Name: "exception", Time: begin, Attributes: attributes[:2], DroppedAttributeCount: 3}, {Time: begin},
		},
		Links:  []sdktrace.Link{{SpanContext: spanContext(t, 3, true), Attributes: attributes[:1], DroppedAttributeCount: 4}, {SpanContext: spanContext(t, 4, false)}},
		Status: sdktrace.Status{Code: codes.Error, Description: "why"}, DroppedAttributes: 5, DroppedEvents: 6, DroppedLinks: 7,
	}
	for name, change := range map[string]func(*tracetest.SpanStub){
		"with everything":        func(*tracetest.SpanStub) {},
		"with nothing":           func(s *tracetest.SpanStub) { *s = tracetest.SpanStub{} },
		"without a parent":       func(s *tracetest.SpanStub) { s.Parent = trace.SpanContext{} },
		"below one of its own":   func(s *tracetest.SpanStub) { s.Parent = s.Parent.WithRemote(false) },
		"that went well":         func(s *tracetest.SpanStub) { s.Status = sdktrace.Status{Code: codes.Ok} },
		"of a client":            func(s *tracetest.SpanStub) { s.SpanKind = trace.SpanKindClient },
		"inside a process":       func(s *tracetest.SpanStub) { s.SpanKind = trace.SpanKindInternal },
		"of a producer":          func(s *tracetest.SpanStub) { s.SpanKind = trace.SpanKindProducer },
		"of a consumer":          func(s *tracetest.SpanStub) { s.SpanKind = trace.SpanKindConsumer },
		"that ended before 1970": func(s *tracetest.SpanStub) { s.EndTime = time.Unix(-1, 0) },
	} {
		t.Run(name, func(t *testing.T) {
			stub := whole
			change(&stub)
			got, want := ours(t, stub.Snapshot()), theirs(t, stub.Snapshot())
			for i, l := range stub.Links { // which the exporter leaves out
				want.Links[i].TraceState = l.SpanContext.TraceState().String()
			}
			if diff := cmp.Diff(want, got, protocmp.Transform()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestATextThatIsNotUTF8DoesNotSpoilTheBatch(t *testing.T) {
	s := ours(t, tracetest.SpanStub{Name: "a\xffb", Attributes: []attribute.KeyValue{attribute.String("k\xff", "\xff")}}.Snapshot())
	if a := s.GetAttributes()[0]; s.GetName() != "a\ufffdb" || a.GetKey() != "k\ufffd" || a.GetValue().GetStringValue() != "\ufffd" {
		t.Errorf("got %v", s)
	}
}

func TestAnAttributeOfARareKindIsText(t *testing.T) {
	s := ours(t, tracetest.SpanStub{Attributes: []attribute.KeyValue{attribute.IntSlice("n", []int{1, 2})}}.Snapshot())
	if got := s.GetAttributes()[0].GetValue().GetStringValue(); got != "[1,2]" {
		t.Errorf("got %q", got)
	}
}
