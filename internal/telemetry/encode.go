package telemetry

import (
	"math"
	"strings"
	"time"
	"unicode/utf8"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of opentelemetry.proto.trace.v1 and common.v1 that are written.
const (
	scopeSpans protowire.Number = 2

	spanTraceID           protowire.Number = 1
	spanID                protowire.Number = 2
	spanTraceState        protowire.Number = 3
	spanParentID          protowire.Number = 4
	spanName              protowire.Number = 5
	spanKind              protowire.Number = 6
	spanStart             protowire.Number = 7
	spanEnd               protowire.Number = 8
	spanAttributes        protowire.Number = 9
	spanDroppedAttributes protowire.Number = 10
	spanEvents            protowire.Number = 11
	spanDroppedEvents     protowire.Number = 12
	spanLinks             protowire.Number = 13
	spanDroppedLinks      protowire.Number = 14
	spanStatus            protowire.Number = 15
	spanFlags             protowire.Number = 16

	eventTime              protowire.Number = 1
	eventName              protowire.Number = 2
	eventAttributes        protowire.Number = 3
	eventDroppedAttributes protowire.Number = 4

	linkTraceID           protowire.Number = 1
	linkSpanID            protowire.Number = 2
	linkTraceState        protowire.Number = 3
	linkAttributes        protowire.Number = 4
	linkDroppedAttributes protowire.Number = 5
	linkFlags             protowire.Number = 6

	statusMessage protowire.Number = 2
	statusCode    protowire.Number = 3

	keyValueKey   protowire.Number = 1
	keyValueValue protowire.Number = 2

	anyString protowire.Number = 1
	anyBool   protowire.Number = 2
	anyInt    protowire.Number = 3
	anyDouble protowire.Number = 4
	anyArray  protowire.Number = 5

	arrayValues protowire.Number = 1
)

// appendSpan adds a span to b as it stands in a ScopeSpans message. It writes
// what the SDK's exporter would: a test compares the two. That one makes a
// message for the span and for each attribute, which costs several times as
// much as the span itself.
func appendSpan(b []byte, s sdktrace.ReadOnlySpan) []byte {
	return nested(b, scopeSpans, func(b []byte) []byte {
		sc, parent := s.SpanContext(), s.Parent()
		trace, id := sc.TraceID(), sc.SpanID()
		b = appendBytes(b, spanTraceID, trace[:])
		b = appendBytes(b, spanID, id[:])
		b = appendText(b, spanTraceState, sc.TraceState().String())
		if above := parent.SpanID(); above.IsValid() {
			b = appendBytes(b, spanParentID, above[:])
		}
		b = appendText(b, spanName, s.Name())
		b = appendNumber(b, spanKind, int(s.SpanKind())) // both count in the same order
		b = appendTime(b, spanStart, s.StartTime())
		b = appendTime(b, spanEnd, s.EndTime())
		b = appendAttributes(b, spanAttributes, s.Attributes())
		b = appendNumber(b, spanDroppedAttributes, s.DroppedAttributes())
		for _, e := range s.Events() {
			b = appendEvent(b, e)
		}
		b = appendNumber(b, spanDroppedEvents, s.DroppedEvents())
		for _, l := range s.Links() {
			b = appendLink(b, l)
		}
		b = appendNumber(b, spanDroppedLinks, s.DroppedLinks())
		b = appendStatus(b, s.Status())
		return appendFlags(b, spanFlags, sc.TraceFlags(), parent)
	})
}

func appendEvent(b []byte, e sdktrace.Event) []byte {
	return nested(b, spanEvents, func(b []byte) []byte {
		b = appendTime(b, eventTime, e.Time)
		b = appendText(b, eventName, e.Name)
		b = appendAttributes(b, eventAttributes, e.Attributes)
		return appendNumber(b, eventDroppedAttributes, e.DroppedAttributeCount)
	})
}

func appendLink(b []byte, l sdktrace.Link) []byte {
	return nested(b, spanLinks, func(b []byte) []byte {
		trace, id := l.SpanContext.TraceID(), l.SpanContext.SpanID()
		b = appendBytes(b, linkTraceID, trace[:])
		b = appendBytes(b, linkSpanID, id[:])
		b = appendText(b, linkTraceState, l.SpanContext.TraceState().String())
		b = appendAttributes(b, linkAttributes, l.Attributes)
		b = appendNumber(b, linkDroppedAttributes, l.DroppedAttributeCount)
		return appendFlags(b, linkFlags, l.SpanContext.TraceFlags(), l.SpanContext)
	})
}

func appendStatus(b []byte, s sdktrace.Status) []byte {
	code := tracepb.Status_STATUS_CODE_UNSET
	switch s.Code {
	case codes.Ok:
		code = tracepb.Status_STATUS_CODE_OK
	case codes.Error:
		code = tracepb.Status_STATUS_CODE_ERROR
	}
	return nested(b, spanStatus, func(b []byte) []byte {
		return appendNumber(appendText(b, statusMessage, s.Description), statusCode, int(code))
	})
}

// appendFlags writes the flags of a trace, and whether the span that is above
// or linked to is another process's.
func appendFlags(b []byte, n protowire.Number, flags trace.TraceFlags, other trace.SpanContext) []byte {
	all := uint32(flags) | uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_HAS_IS_REMOTE_MASK)
	if other.IsRemote() {
		all |= uint32(tracepb.SpanFlags_SPAN_FLAGS_CONTEXT_IS_REMOTE_MASK)
	}
	return protowire.AppendFixed32(protowire.AppendTag(b, n, protowire.Fixed32Type), all)
}

func appendAttributes(b []byte, n protowire.Number, all []attribute.KeyValue) []byte {
	for i := range all {
		b = nested(b, n, func(b []byte) []byte {
			b = appendText(b, keyValueKey, string(all[i].Key))
			return nested(b, keyValueValue, func(b []byte) []byte { return appendValue(b, all[i].Value) })
		})
	}
	return b
}

// appendValue writes an AnyValue, where a field is there even if it is empty.
// Kinds that no span here has are written as text.
func appendValue(b []byte, v attribute.Value) []byte {
	switch v.Type() {
	case attribute.STRING:
		return appendWord(b, anyString, v.AsString())
	case attribute.BOOL:
		return protowire.AppendVarint(protowire.AppendTag(b, anyBool, protowire.VarintType), protowire.EncodeBool(v.AsBool()))
	case attribute.INT64:
		return protowire.AppendVarint(protowire.AppendTag(b, anyInt, protowire.VarintType), uint64(v.AsInt64()))
	case attribute.FLOAT64:
		return protowire.AppendFixed64(protowire.AppendTag(b, anyDouble, protowire.Fixed64Type), math.Float64bits(v.AsFloat64()))
	case attribute.STRINGSLICE:
		return nested(b, anyArray, func(b []byte) []byte {
			for _, one := range v.AsStringSlice() {
				b = nested(b, arrayValues, func(b []byte) []byte { return appendWord(b, anyString, one) })
			}
			return b
		})
	case attribute.EMPTY:
		return b
	default:
		return appendWord(b, anyString, v.String())
	}
}

func appendText(b []byte, n protowire.Number, s string) []byte {
	if s == "" {
		return b
	}
	return appendWord(b, n, s)
}

// appendWord writes a text, also an empty one. A collector refuses a whole
// request for one text that is not UTF-8.
func appendWord(b []byte, n protowire.Number, s string) []byte {
	if !utf8.ValidString(s) {
		s = strings.ToValidUTF8(s, string(utf8.RuneError))
	}
	return protowire.AppendString(protowire.AppendTag(b, n, protowire.BytesType), s)
}

func appendBytes(b []byte, n protowire.Number, v []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, n, protowire.BytesType), v)
}

func appendNumber(b []byte, n protowire.Number, v int) []byte {
	if v <= 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, n, protowire.VarintType), uint64(min(v, math.MaxInt32)))
}

func appendTime(b []byte, n protowire.Number, t time.Time) []byte {
	return protowire.AppendFixed64(protowire.AppendTag(b, n, protowire.Fixed64Type), uint64(max(0, t.UnixNano())))
}

// nested adds a message with what write adds. Its length is known afterwards;
// most are short enough for the one byte that is left for it.
func nested(b []byte, n protowire.Number, write func([]byte) []byte) []byte {
	b = append(protowire.AppendTag(b, n, protowire.BytesType), 0)
	begin := len(b)
	b = write(b)
	size := len(b) - begin
	if more := protowire.SizeVarint(uint64(size)) - 1; more > 0 {
		b = append(b, make([]byte, more)...)
		copy(b[begin+more:], b[begin:begin+size])
	}
	protowire.AppendVarint(b[:begin-1], uint64(size))
	return b
}
