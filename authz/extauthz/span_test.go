package extauthz_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/metadata"

	"hangar.io/glidepath/authz/apifake"
	"hangar.io/glidepath/internal/standin/otlp"
	"hangar.io/glidepath/internal/telemetry"
)

const (
	traceOf  = "0af7651916cd43dd8448eb211c80319c"
	parentOf = "b7ad6b7169203331"
)

// traced gives a context as gRPC hands it over when Envoy sends a traceparent
// with these flags.
func traced(ctx context.Context, flags string) context.Context {
	return metadata.NewIncomingContext(ctx, metadata.Pairs(":authority", "authz", "content-type", "application/grpc", "user-agent", "envoy",
		"x-envoy-internal", "true", "x-envoy-expected-rq-timeout-ms", "2500", "traceparent", "00-"+traceOf+"-"+parentOf+"-"+flags))
}

// newTraces gives a collector, and tracing that exports to it.
func newTraces(t testing.TB) (*otlp.Receiver, *telemetry.Tracing) {
	t.Helper()
	r, err := otlp.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	tracing, err := telemetry.NewTracing(t.Context(), telemetry.Options{
		TraceConfig: telemetry.TraceConfig{OTLPEndpoint: r.URL, TraceRatio: 1}, Service: "glidepath-authz", Metrics: prometheus.NewRegistry(),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tracing.Shutdown(context.Background()) })
	return r, tracing
}

// heard are the traceparents that reached the API server, by path.
type heard struct {
	mu      sync.Mutex
	parents map[string]string
}

func listen(s *apifake.Server) *heard {
	h := &heard{parents: map[string]string{}}
	s.Fail(func(_ http.ResponseWriter, r *http.Request) bool {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.parents[r.URL.Path] = r.Header.Get("Traceparent")
		return false
	})
	return h
}

func TestACheckIsASpanOfTheCallsTraceWithItsReviewsBelow(t *testing.T) {
	collector, tracing := newTraces(t)
	e, s := newTracedStack(t, tracing)
	h := listen(s)
	resp, err := e.Check(traced(t.Context(), "01"), request("listLive", "GET", "/v1/apps/shop/live", map[string]string{"authorization": "Bearer reader-token"}))
	if err != nil || resp.GetOkResponse() == nil {
		t.Fatalf("%v %v", resp, err)
	}
	tracing.Shutdown(t.Context())
	spans := collector.Trace(traceOf)
	if len(spans) != 3 {
		t.Fatalf("%d spans: %+v", len(spans), spans)
	}
	byName := map[string]otlp.Span{}
	for _, one := range spans {
		byName[one.Name] = one
	}
	check := byName["envoy.service.auth.v3.Authorization/Check"]
	if check.Parent != parentOf || check.Kind != "server" || check.Failed || len(check.Events) != 0 || check.Service() != "glidepath-authz" || check.Resource["service.instance.id"] == "" {
		t.Errorf("the check's span: %+v", check)
	}
	for name, want := range map[string]string{
		"glidepath.op": "listLive", "glidepath.tier": "T0", "glidepath.app": "shop", "glidepath.decision": "allow", "glidepath.caller": "reader",
	} {
		if got := check.Attributes[name]; got != want {
			t.Errorf("%s is %q, want %q", name, got, want)
		}
	}
	for name, path := range map[string]string{"create tokenreviews": apifake.TokenReviews, "create subjectaccessreviews": apifake.AccessReviews} {
		review := byName[name]
		if review.Parent != check.ID || review.Kind != "client" || review.Attributes["http.response.status_code"] != "201" {
			t.Errorf("%s: %+v", name, review)
		}
		if want := "00-" + traceOf + "-" + review.ID + "-01"; h.parents[path] != want {
			t.Errorf("the API server was told %q, want %q", h.parents[path], want)
		}
		for key, value := range review.Attributes {
			if strings.Contains(value, "reader-token") || strings.Contains(value, apifake.ProcessToken) {
				t.Errorf("%s shows a token in %s", name, key)
			}
		}
	}
}

func TestARefusalIsRecordedAndOnlyAFailureMarksTheSpan(t *testing.T) {
	collector, tracing := newTraces(t)
	e, s := newTracedStack(t, tracing)
	refuse := func(path, authorization string) {
		t.Helper()
		if resp, err := e.Check(traced(t.Context(), "01"), request("listLive", "GET", path, map[string]string{"authorization": authorization})); err != nil || resp.GetDeniedResponse() == nil {
			t.Fatalf("%v %v", resp, err)
		}
	}
	refuse("/v1/apps/other/live", "Bearer reader-token")
	s.Fail(func(w http.ResponseWriter, _ *http.Request) bool {
		w.WriteHeader(http.StatusInternalServerError)
		return true
	})
	refuse("/v1/apps/shop/live", "Bearer unknown-token")
	tracing.Shutdown(t.Context())
	seen := 0
	for _, span := range collector.Trace(traceOf) {
		rule, failed := span.Attributes["glidepath.rule"], false
		switch {
		case span.Kind == "client":
			continue
		case rule == "GP-API-502":
			failed = true
		case rule != "GP-AUTHZ-001":
			t.Errorf("an unexpected span: %+v", span)
		}
		seen++
		if span.Failed != failed || span.Attributes["glidepath.decision"] != "deny" || len(span.Events) != 1 || span.Events[0].Name != "exception" || span.Events[0].Attributes["exception.type"] != rule {
			t.Errorf("%s: %+v", rule, span)
		}
		for _, event := range span.Events {
			if strings.Contains(event.Attributes["exception.message"], "unknown-token") {
				t.Errorf("%s shows the token: %v", rule, event)
			}
		}
	}
	if seen != 2 {
		t.Errorf("%d refusals", seen)
	}
}

func TestACallThatIsNotSampledHasNoSpansAndIsPassedOn(t *testing.T) {
	collector, on := newTraces(t)
	for name, c := range map[string]struct {
		tracing *telemetry.Tracing
		flags   string
	}{
		"not sampled":      {on, "00"},
		"nothing exported": {new(telemetry.Tracing), "01"},
	} {
		t.Run(name, func(t *testing.T) {
			e, s := newTracedStack(t, c.tracing)
			h := listen(s)
			if resp, err := e.Check(traced(t.Context(), c.flags), request("listLive", "GET", "/v1/apps/shop/live", map[string]string{"authorization": "Bearer reader-token"})); err != nil || resp.GetOkResponse() == nil {
				t.Fatalf("%v %v", resp, err)
			}
			want := "00-" + traceOf + "-" + parentOf + "-" + c.flags
			for _, path := range []string{apifake.TokenReviews, apifake.AccessReviews} {
				if got := h.parents[path]; got != want {
					t.Errorf("%s was told %q, want %q", path, got, want)
				}
			}
		})
	}
	on.Shutdown(t.Context())
	if n, _ := collector.Exports(); n != 0 {
		t.Errorf("%d exports", n)
	}
}

// BenchmarkCheckTraced is what a trace adds to a cached check: next to nothing
// when nothing is recorded.
func BenchmarkCheckTraced(b *testing.B) {
	for name, c := range map[string]struct {
		flags string
		on    bool
	}{
		"no trace":                       {"", false},
		"sampled, nothing is exported":   {"01", false},
		"not sampled, spans are enabled": {"00", true},
		"sampled, spans are enabled":     {"01", true},
	} {
		b.Run(name, func(b *testing.B) {
			tracing := new(telemetry.Tracing)
			if c.on { // to nobody: what a collector costs is not meant
				var err error
				tracing, err = telemetry.NewTracing(b.Context(), telemetry.Options{
					TraceConfig: telemetry.TraceConfig{OTLPEndpoint: "http://127.0.0.1:1", TraceRatio: 1}, Service: "x", Metrics: prometheus.NewRegistry(),
				})
				if err != nil {
					b.Fatal(err)
				}
				b.Cleanup(func() { tracing.Shutdown(context.Background()) })
			}
			e, s := newTracedStack(b, tracing)
			tok := longToken("reader")
			s.AcceptUser(tok, "reader")
			ctx := b.Context()
			if c.flags != "" {
				ctx = traced(ctx, c.flags)
			}
			req := wire(b, request("listLive", "GET", "/v1/apps/shop/live", map[string]string{"authorization": "Bearer " + tok}))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := e.CheckRaw(ctx, req); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
