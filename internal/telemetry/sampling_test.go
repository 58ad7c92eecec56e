package telemetry_test

import (
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/propagation"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"hangar.io/glidepath/internal/telemetry"
)

const (
	traceOf  = "0af7651916cd43dd8448eb211c80319c"
	parentOf = "b7ad6b7169203331"
)

func TestWithoutAnEndpointNothingIsExportedAndTracesArePassedOn(t *testing.T) {
	tracing, reg := start(t, telemetry.TraceConfig{TraceRatio: 1}, &http.Client{Transport: roundTripper(func(*http.Request) (*http.Response, error) {
		t.Error("something was exported")
		return nil, http.ErrServerClosed
	})})
	_, span := tracing.Start(t.Context(), "call")
	if span.IsRecording() || span.SpanContext().IsValid() || tracing.Enabled() || len(spans(t, reg)) != 0 {
		t.Errorf("a span %v, counted %v", span.SpanContext(), spans(t, reg))
	}
	span.End()
	if got := passedOn(t, tracing, "00-"+traceOf+"-"+parentOf+"-01", "vendor=1"); got.Get("Traceparent") != "00-"+traceOf+"-"+parentOf+"-01" || got.Get("Tracestate") != "vendor=1" {
		t.Errorf("passed on as %v", got)
	}
	tracing.Shutdown(t.Context())
}

func TestEveryFaultOfTheSettingsIsSaidTogetherAndWithoutTheEndpoint(t *testing.T) {
	err := telemetry.TraceConfig{OTLPEndpoint: "ftp://user:hunter2@collector", OTLPCAFile: "ca.crt", TraceRatio: math.NaN()}.Validate()
	if err == nil {
		t.Fatal("no fault")
	}
	for _, flag := range []string{"--otlp-endpoint", "--otlp-ca-file", "--trace-ratio"} {
		if !strings.Contains(err.Error(), flag) {
			t.Errorf("%v lacks %s", err, flag)
		}
	}
	if strings.Contains(err.Error(), "hunter2") {
		t.Errorf("%v shows a password", err)
	}
	for _, endpoint := range []string{"collector:4318", "http://", "http://u:p@c", "http://c?x=1", "http://c#x", "unix:///run/c.sock"} {
		if err := (telemetry.TraceConfig{OTLPEndpoint: endpoint, TraceRatio: 1}).Validate(); err == nil {
			t.Errorf("%s was taken", endpoint)
		}
	}
	for _, ratio := range []float64{-0.1, 1.1, math.Inf(1)} {
		if err := (telemetry.TraceConfig{TraceRatio: ratio}).Validate(); err == nil {
			t.Errorf("a ratio of %v was taken", ratio)
		}
	}
}

func TestTheRatioDecidesByTheTraceIDAlone(t *testing.T) {
	const calls = 400
	for _, ratio := range []float64{0, 0.5, 1} {
		r := collector(t)
		tracing, _ := start(t, telemetry.TraceConfig{OTLPEndpoint: r.URL, TraceRatio: ratio}, nil)
		sampled := 0
		for range calls {
			_, span := tracing.Start(t.Context(), "call")
			// As every process of the same ratio decides.
			same := sdktrace.TraceIDRatioBased(ratio).ShouldSample(sdktrace.SamplingParameters{TraceID: span.SpanContext().TraceID()})
			if span.SpanContext().IsSampled() != (same.Decision == sdktrace.RecordAndSample) {
				t.Fatalf("ratio %v: %v is sampled: %v", ratio, span.SpanContext().TraceID(), span.SpanContext().IsSampled())
			}
			if span.SpanContext().IsSampled() {
				sampled++
			}
			span.End()
		}
		tracing.Shutdown(t.Context())
		// Half of 400 is within 100 of 200 but for once in 10^23 runs.
		if least, most := int(ratio*calls)-100, int(ratio*calls)+100; sampled < least || sampled > most || (ratio == 0 && sampled > 0) || (ratio == 1 && sampled < calls) {
			t.Errorf("ratio %v: %d of %d are sampled", ratio, sampled, calls)
		}
		if got := len(r.Spans()); got != sampled {
			t.Errorf("ratio %v: %d spans of %d were exported", ratio, got, sampled)
		}
	}
}

// passedOn gives the headers of a request that is made for a call with this
// trace.
func passedOn(t *testing.T, tracing *telemetry.Tracing, parent, state string) http.Header {
	t.Helper()
	var out http.Header
	client := tracing.Transport(roundTripper(func(r *http.Request) (*http.Response, error) {
		out = r.Header
		return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody, Request: r}, nil
	}), func(*http.Request) string { return "request" })
	h := tracing.Handler(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		to, err := http.NewRequestWithContext(r.Context(), http.MethodGet, "http://source.invalid/", nil)
		if err != nil {
			t.Error(err)
			return
		}
		resp, err := client.RoundTrip(to)
		if err != nil {
			t.Error(err)
			return
		}
		_ = resp.Body.Close()
		if to.Header.Get("Traceparent") != "" {
			t.Error("the caller's request was changed")
		}
	}), func(*http.Request) string { return "call" })
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
	if parent != "" {
		r.Header.Set("Traceparent", parent)
		r.Header.Set("Tracestate", state)
	}
	h.ServeHTTP(httptest.NewRecorder(), r)
	return out
}

func TestTheCallersDecisionIsKeptWhateverTheRatio(t *testing.T) {
	for name, tt := range map[string]struct {
		ratio  float64
		parent string
		joined bool // the caller's trace goes on
		spans  int
	}{
		"sampled, at ratio 0":                {0, "00-" + traceOf + "-" + parentOf + "-01", true, 2},
		"not sampled, at ratio 1":            {1, "00-" + traceOf + "-" + parentOf + "-00", true, 0},
		"none, at ratio 1":                   {1, "", false, 2},
		"of zeros, at ratio 1":               {1, "00-" + strings.Repeat("0", 32) + "-" + parentOf + "-01", false, 2},
		"too short, at ratio 1":              {1, "00-" + traceOf[1:] + "-" + parentOf + "-01", false, 2},
		"in upper case, at ratio 1":          {1, "00-" + strings.ToUpper(traceOf) + "-" + parentOf + "-01", false, 2},
		"of the forbidden version, ratio 1":  {1, "ff-" + traceOf + "-" + parentOf + "-01", false, 2},
		"malformed and thus new, at ratio 0": {0, "garbage", false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := collector(t)
			tracing, _ := start(t, telemetry.TraceConfig{OTLPEndpoint: r.URL, TraceRatio: tt.ratio}, nil)
			out := passedOn(t, tracing, tt.parent, "vendor=1")
			tracing.Shutdown(t.Context())
			got := r.Spans()
			if len(got) != tt.spans {
				t.Fatalf("%d spans: %+v", len(got), got)
			}
			sc := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(t.Context(), propagation.HeaderCarrier(out)))
			if joined := sc.TraceID().String() == traceOf; joined != tt.joined {
				t.Errorf("passed on as %v", out)
			}
			if state := out.Get("Tracestate"); (state == "vendor=1") != tt.joined {
				t.Errorf("the tracestate is %q", state)
			}
			for _, s := range got {
				if s.Name == "call" && (s.Parent == parentOf) != tt.joined {
					t.Errorf("the call's span is below %q", s.Parent)
				}
			}
			if tt.joined && tt.spans == 0 && sc.SpanID().String() != parentOf {
				t.Errorf("a trace without spans is passed on as %v", out)
			}
		})
	}
}
