package otlp_test

import (
	"bytes"
	"compress/gzip"
	"net/http"
	"testing"
	"time"

	collectorpb "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonpb "go.opentelemetry.io/proto/otlp/common/v1"
	resourcepb "go.opentelemetry.io/proto/otlp/resource/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"go.uber.org/goleak"
	"google.golang.org/protobuf/proto"

	"hangar.io/glidepath/internal/standin/otlp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *otlp.Receiver {
	t.Helper()
	r, err := otlp.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		http.DefaultClient.CloseIdleConnections()
		r.Stop()
	})
	return r
}

// export is a request with one span, which change alters first.
func export(t *testing.T, change func(*tracepb.Span)) []byte {
	t.Helper()
	text := func(key, value string) *commonpb.KeyValue {
		return &commonpb.KeyValue{Key: key, Value: &commonpb.AnyValue{Value: &commonpb.AnyValue_StringValue{StringValue: value}}}
	}
	begin := time.Date(2026, 11, 29, 10, 0, 0, 0, time.UTC).UnixNano()
	span := &tracepb.Span{
		TraceId: bytes.Repeat([]byte{0xab}, 16), SpanId: bytes.Repeat([]byte{1}, 8), ParentSpanId: bytes.Repeat([]byte{2}, 8),
		Name: "listLive", Kind: tracepb.Span_SPAN_KIND_SERVER, TraceState: "a=b",
		StartTimeUnixNano: uint64(begin), EndTimeUnixNano: uint64(begin) + 5,
		Attributes: []*commonpb.KeyValue{text("glidepath.op", "listLive")},
		Events:     []*tracepb.Span_Event{{Name: "exception", Attributes: []*commonpb.KeyValue{text("exception.type", "GP-API-502")}}},
		Links:      []*tracepb.Span_Link{{TraceId: bytes.Repeat([]byte{3}, 16), SpanId: bytes.Repeat([]byte{4}, 8)}},
		Status:     &tracepb.Status{Code: tracepb.Status_STATUS_CODE_ERROR, Message: "why"},
	}
	change(span)
	raw, err := proto.Marshal(&collectorpb.ExportTraceServiceRequest{ResourceSpans: []*tracepb.ResourceSpans{{
		Resource:   &resourcepb.Resource{Attributes: []*commonpb.KeyValue{text("service.name", "edge")}},
		ScopeSpans: []*tracepb.ScopeSpans{{Spans: []*tracepb.Span{span}}},
	}}})
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func same(*tracepb.Span) {}

func zip(t *testing.T, raw []byte) []byte {
	t.Helper()
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(raw); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func send(t *testing.T, method, url, kind, encoding string, body []byte) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", kind)
	if encoding != "" {
		req.Header.Set("Content-Encoding", encoding)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	return resp.StatusCode
}

func TestASpanIsReadWhole(t *testing.T) {
	r := start(t)
	for _, encoding := range []string{"", "gzip"} {
		r.Reset()
		body := export(t, same)
		if encoding != "" {
			body = zip(t, body)
		}
		if got := send(t, http.MethodPost, r.URL+"/v1/traces", "application/x-protobuf", encoding, body); got != http.StatusOK {
			t.Fatalf("%q: %d", encoding, got)
		}
		spans := r.Trace("abababababababababababababababab")
		if len(spans) != 1 {
			t.Fatalf("%q: %d spans", encoding, len(spans))
		}
		s := spans[0]
		if s.Service() != "edge" || s.ID != "0101010101010101" || s.Parent != "0202020202020202" || s.Name != "listLive" || s.Kind != "server" ||
			s.TraceState != "a=b" || !s.Failed || s.Status != "why" || s.Attributes["glidepath.op"] != "listLive" || s.End.Sub(s.Start) != 5 ||
			len(s.Events) != 1 || s.Events[0].Attributes["exception.type"] != "GP-API-502" || len(s.Links) != 1 || s.Links[0].SpanID != "0404040404040404" {
			t.Errorf("%q: %+v", encoding, s)
		}
	}
	if n, refused := r.Exports(); n != 2 || len(refused) != 0 {
		t.Errorf("%d exports, refused %v", n, refused)
	}
}

func TestWhatIsNoExportIsRefused(t *testing.T) {
	r := start(t)
	const traces, protobuf = "/v1/traces", "application/x-protobuf"
	for name, c := range map[string]struct {
		method, path, kind, encoding string
		body                         []byte
		want                         int
	}{
		"another path":                 {"POST", "/v1/metrics", protobuf, "", export(t, same), 404},
		"another method":               {"PUT", traces, protobuf, "", export(t, same), 405},
		"another type":                 {"POST", traces, "application/json", "", []byte("{}"), 415},
		"an unknown encoding":          {"POST", traces, protobuf, "br", export(t, same), 415},
		"gzip that is none":            {"POST", traces, protobuf, "gzip", export(t, same), 400},
		"protobuf that is none":        {"POST", traces, protobuf, "", []byte("hello"), 400},
		"a trace id that is too short": {"POST", traces, protobuf, "", export(t, func(s *tracepb.Span) { s.TraceId = s.TraceId[1:] }), 400},
		"a span without an id":         {"POST", traces, protobuf, "", export(t, func(s *tracepb.Span) { s.SpanId = nil }), 400},
		"half a parent":                {"POST", traces, protobuf, "", export(t, func(s *tracepb.Span) { s.ParentSpanId = s.ParentSpanId[:4] }), 400},
		"an end before the beginning":  {"POST", traces, protobuf, "", export(t, func(s *tracepb.Span) { s.EndTimeUnixNano = 1 }), 400},
	} {
		if got := send(t, c.method, r.URL+c.path, c.kind, c.encoding, c.body); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
	r.Fail(http.StatusServiceUnavailable)
	if got := send(t, "POST", r.URL+traces, protobuf, "", export(t, same)); got != http.StatusServiceUnavailable {
		t.Errorf("a collector that fails answers %d", got)
	}
	if got := r.Spans(); len(got) != 0 {
		t.Errorf("took %d spans", len(got))
	}
	if _, refused := r.Exports(); len(refused) != 10 {
		t.Errorf("refused %v", refused)
	}
}
