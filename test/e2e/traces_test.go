package e2e_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/faultproxy"
	"hangar.io/glidepath/internal/standin/otlp"
)

const callersSpan = "b7ad6b7169203331"

// newTraceID gives a trace that nothing else has, and a traceparent in it.
func newTraceID(t *testing.T, flags string) (id, traceparent string) {
	t.Helper()
	id = fmt.Sprintf("%032x", time.Now().UnixNano())
	return id, "00-" + id + "-" + callersSpan + "-" + flags
}

// tracedGateway starts a gateway whose processes all export to one collector;
// an empty endpoint exports nothing.
func tracedGateway(t *testing.T, endpoint string) *devenv.Gateway {
	t.Helper()
	flags := []string{"--otlp-endpoint=" + endpoint}
	return devtest.Gateway(t, devenv.GatewayConfig{
		APIServer: gw.APIServer, Redis: gw.Redis, Faults: true, PlannedTo: planned.Addr,
		Args: map[string][]string{"authz": flags, "xds": flags, "livehub": flags},
	})
}

func startCollector(t *testing.T) *otlp.Receiver {
	t.Helper()
	r, err := otlp.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Stop)
	return r
}

// parents are the traceparents that reach the API server, by path.
type parents struct {
	mu     sync.Mutex
	byPath map[string][]string
}

func observe(g *devenv.Gateway) *parents {
	p := &parents{byPath: map[string][]string{}}
	g.Faults.Observe(func(r *http.Request) {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.byPath[r.URL.Path] = append(p.byPath[r.URL.Path], r.Header.Get("Traceparent"))
	})
	return p
}

// of gives those of one trace that reached a path.
func (p *parents) of(trace, path string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(p.byPath[path]), func(v string) bool { return !strings.Contains(v, trace) })
}

// trace waits for the spans of a trace until all that are named are there.
func trace(t *testing.T, r *otlp.Receiver, id string, names ...string) []otlp.Span {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	spans, err := r.Await(ctx, id, func(spans []otlp.Span) bool {
		for _, n := range names {
			if !slices.ContainsFunc(spans, func(s otlp.Span) bool { return s.Service()+" "+s.Name == n }) {
				return false
			}
		}
		return true
	})
	if err != nil {
		for _, s := range spans {
			t.Logf("%s %q kind %s, %s below %s", s.Service(), s.Name, s.Kind, s.ID, s.Parent)
		}
		t.Fatalf("waiting for %q: %v", names, err)
	}
	return spans
}

func spanNamed(t *testing.T, spans []otlp.Span, service, name string) otlp.Span {
	t.Helper()
	i := slices.IndexFunc(spans, func(s otlp.Span) bool { return s.Service() == service && s.Name == name })
	if i < 0 {
		t.Fatalf("no span %s of %s", name, service)
	}
	return spans[i]
}

func (p *parents) wantTold(t *testing.T, s otlp.Span, path string) {
	t.Helper()
	if got, want := p.of(s.TraceID, path), "00-"+s.TraceID+"-"+s.ID+"-01"; !slices.Contains(got, want) {
		t.Errorf("%s was told %q, want %q", path, got, want)
	}
}

const (
	edgeService, authzService, livehubService = "glidepath-edge", "glidepath-authz", "glidepath-livehub"

	asyncCheck = "async envoy.service.auth.v3.Authorization.Check egress"
	checkSpan  = "envoy.service.auth.v3.Authorization/Check"
)

// rule: R443, R444, R445, R447
func TestACallIsOneTraceFromItsCallerToItsSources(t *testing.T) {
	t.Parallel()
	collector := startCollector(t)
	g := tracedGateway(t, collector.URL)
	told := observe(g)
	t.Run("an answered call", func(t *testing.T) { anAnsweredCallIsTraced(t, g, collector, told) })
	t.Run("a refused call", func(t *testing.T) { aRefusedCallIsTraced(t, g, collector) })
	t.Run("a failed call", func(t *testing.T) { aFailedCallIsTraced(t, g, collector) })
	t.Run("a delegate's write", func(t *testing.T) { aDelegatesWriteIsTraced(t, g, collector) })
	t.Run("a call that is not sampled", func(t *testing.T) { anUnsampledCallIsPassedOn(t, g, collector, told) })
	if _, refused := collector.Exports(); len(refused) > 0 {
		t.Errorf("exports that no collector takes: %v", refused)
	}
	for _, s := range collector.Spans() {
		for key, value := range s.Attributes {
			for caller, token := range tokens {
				if strings.Contains(value, token) {
					t.Errorf("%s %s shows the token of %s in %s", s.Service(), s.Name, caller, key)
				}
			}
		}
		if s.Parent == "" && s.Service() != edgeService {
			t.Errorf("work for no call has a span: %s %s", s.Service(), s.Name)
		}
	}
}

func anAnsweredCallIsTraced(t *testing.T, g *devenv.Gateway, collector *otlp.Receiver, told *parents) {
	id, traceparent := newTraceID(t, "01")
	a := call(t, http.MethodGet, g.URL+"/v1/apps/sky-marshall/live", bearer(newToken(t, "reader")), header("Traceparent", traceparent), header("Tracestate", "vendor=value"))
	ok(t, a)
	if a.traceID() != id {
		t.Errorf("the caller is told trace %q", a.traceID())
	}
	spans := trace(t, collector, id, edgeService+" listLive", edgeService+" "+asyncCheck, authzService+" "+checkSpan, authzService+" create tokenreviews",
		authzService+" create subjectaccessreviews", livehubService+" listLive", livehubService+" list pipelineruns", livehubService+" list taskruns")
	edge, async := spanNamed(t, spans, edgeService, "listLive"), spanNamed(t, spans, edgeService, asyncCheck)
	check, backend := spanNamed(t, spans, authzService, checkSpan), spanNamed(t, spans, livehubService, "listLive")
	for _, below := range []struct {
		span   otlp.Span
		parent string
		kind   string
	}{
		{edge, callersSpan, "server"},
		{async, edge.ID, "client"},
		{check, async.ID, "server"},
		{backend, edge.ID, "server"},
		{spanNamed(t, spans, authzService, "create tokenreviews"), check.ID, "client"},
		{spanNamed(t, spans, authzService, "create subjectaccessreviews"), check.ID, "client"},
		{spanNamed(t, spans, livehubService, "list pipelineruns"), backend.ID, "client"},
		{spanNamed(t, spans, livehubService, "list taskruns"), backend.ID, "client"},
	} {
		if below.span.Parent != below.parent || below.span.Kind != below.kind || below.span.Failed || below.span.TraceState != "vendor=value" {
			t.Errorf("%s %q is a %s below %s in state %q, want %s below %s", below.span.Service(), below.span.Name, below.span.Kind, below.span.Parent, below.span.TraceState, below.kind, below.parent)
		}
	}
	for _, s := range []otlp.Span{edge, check, backend} {
		wantAttributes(t, s, map[string]string{
			"glidepath.op": "listLive", "glidepath.tier": "T0", "glidepath.app": "sky-marshall", "glidepath.decision": "allow", "glidepath.caller": username(t, "reader"),
		})
	}
	if rule, there := edge.Attributes["glidepath.rule"]; there {
		t.Errorf("a call that went well has the rule %q", rule)
	}
	told.wantTold(t, spanNamed(t, spans, authzService, "create tokenreviews"), tokenReviews)
	told.wantTold(t, spanNamed(t, spans, authzService, "create subjectaccessreviews"), accessReviews)
	told.wantTold(t, spanNamed(t, spans, livehubService, "list taskruns"), "/apis/tekton.dev/v1/namespaces/app-sky-marshall-cicd/taskruns")
}

func wantAttributes(t *testing.T, s otlp.Span, want map[string]string) {
	t.Helper()
	for key, value := range want {
		if got := s.Attributes[key]; got != value {
			t.Errorf("%s %s: %s is %q, want %q", s.Service(), s.Name, key, got, value)
		}
	}
}

// wantError holds the spans of a call that failed to what is recorded of it.
func wantError(t *testing.T, rule string, failed bool, spans ...otlp.Span) {
	t.Helper()
	for _, s := range spans {
		recorded := s.Attributes["glidepath.rule"] == rule
		if s.Service() != edgeService { // Envoy has no events
			recorded = recorded && slices.ContainsFunc(s.Events, func(e otlp.Event) bool { return e.Name == "exception" && e.Attributes["exception.type"] == rule })
		}
		if !recorded || s.Failed != failed {
			t.Errorf("%s %s: failed %v, events %v, attributes %v", s.Service(), s.Name, s.Failed, s.Events, s.Attributes)
		}
	}
}

func aRefusedCallIsTraced(t *testing.T, g *devenv.Gateway, collector *otlp.Receiver) {
	id, traceparent := newTraceID(t, "01")
	refused(t, call(t, http.MethodGet, g.URL+"/v1/apps/shop/live", as("stranger"), header("Traceparent", traceparent)), 403, "GP-AUTHZ-001")
	spans := trace(t, collector, id, edgeService+" listLive", authzService+" "+checkSpan)
	edge, check := spanNamed(t, spans, edgeService, "listLive"), spanNamed(t, spans, authzService, checkSpan)
	wantError(t, "GP-AUTHZ-001", false, edge, check)
	for _, s := range []otlp.Span{edge, check} {
		wantAttributes(t, s, map[string]string{"glidepath.decision": "deny", "glidepath.app": "shop", "glidepath.caller": username(t, "stranger")})
	}

	id, traceparent = newTraceID(t, "01")
	refused(t, call(t, http.MethodGet, g.URL+"/v1/live?limit=0", as("reader"), header("Traceparent", traceparent)), 400, "GP-API-400")
	spans = trace(t, collector, id, edgeService+" listLiveRuns", livehubService+" listLiveRuns")
	wantError(t, "GP-API-400", false, spanNamed(t, spans, edgeService, "listLiveRuns"), spanNamed(t, spans, livehubService, "listLiveRuns"))
}

func aFailedCallIsTraced(t *testing.T, g *devenv.Gateway, collector *otlp.Receiver) {
	g.Faults.Set(faultproxy.Fault{Method: http.MethodGet, Path: "/apis/tekton.dev/v1/namespaces/app-boarding-api-cicd/pipelineruns", Status: 500})
	defer g.Faults.Clear()
	id, traceparent := newTraceID(t, "01")
	refused(t, call(t, http.MethodGet, g.URL+"/v1/apps/boarding-api/live", as("reader"), header("Traceparent", traceparent)), 502, "GP-API-502")
	spans := trace(t, collector, id, edgeService+" listLive", livehubService+" listLive", livehubService+" list pipelineruns")
	wantError(t, "GP-API-502", true, spanNamed(t, spans, edgeService, "listLive"), spanNamed(t, spans, livehubService, "listLive"))
	if source := spanNamed(t, spans, livehubService, "list pipelineruns"); !source.Failed {
		t.Errorf("the source's span is not marked: %+v", source)
	}
}

func aDelegatesWriteIsTraced(t *testing.T, g *devenv.Gateway, collector *otlp.Receiver) {
	id, traceparent := newTraceID(t, "01")
	ok(t, call(t, http.MethodPost, g.URL+calls["rerunPipelineRun"], as("delegate"), onBehalfOf("ada"), header("Traceparent", traceparent)))
	spans := trace(t, collector, id, edgeService+" rerunPipelineRun", authzService+" "+checkSpan)
	for _, s := range []otlp.Span{spanNamed(t, spans, edgeService, "rerunPipelineRun"), spanNamed(t, spans, authzService, checkSpan)} {
		wantAttributes(t, s, map[string]string{
			"glidepath.op": "rerunPipelineRun", "glidepath.tier": "T1", "glidepath.app": "gate-api", "glidepath.decision": "allow",
			"glidepath.caller": username(t, fleet.CallerDelegate), "glidepath.on_behalf_of": "ada",
		})
	}
}

func anUnsampledCallIsPassedOn(t *testing.T, g *devenv.Gateway, collector *otlp.Receiver, told *parents) {
	id, traceparent := newTraceID(t, "00")
	ok(t, call(t, http.MethodGet, g.URL+"/v1/apps/postgres/live", bearer(newToken(t, "reader")), header("Traceparent", traceparent)))
	wantPassedOn(t, told, id, "00")
	// What comes later has arrived, so what was before would have.
	later, traceparent := newTraceID(t, "01")
	ok(t, call(t, http.MethodGet, g.URL+"/v1/whoami", as("reader"), header("Traceparent", traceparent)))
	trace(t, collector, later, edgeService+" whoami", authzService+" whoami", authzService+" "+checkSpan)
	if spans := collector.Trace(id); len(spans) != 0 {
		t.Errorf("%d spans of a call that was not to be sampled: %v", len(spans), spans)
	}
}

// wantPassedOn wants every request for a call of postgres's live view to carry
// its trace, with these flags.
func wantPassedOn(t *testing.T, told *parents, id, flags string) {
	t.Helper()
	for _, path := range []string{tokenReviews, accessReviews, "/apis/tekton.dev/v1/namespaces/infra-postgres-cicd/pipelineruns"} {
		got := told.of(id, path)
		if len(got) != 1 || !strings.HasSuffix(got[0], "-"+flags) {
			t.Errorf("%s was told %q, want trace %s with the flags %s", path, got, id, flags)
		}
	}
}

// Of an app that no test beside it reads: a list that another replica has just read is not read again.
//
// rule: R452
func TestWithoutACollectorTheTraceReachesTheSourcesAllTheSame(t *testing.T) {
	t.Parallel()
	g := tracedGateway(t, "")
	told := observe(g)
	for _, flags := range []string{"01", "00"} {
		id, traceparent := newTraceID(t, flags)
		eventually(t, "the lists are read anew", func() bool {
			ok(t, call(t, http.MethodGet, g.URL+"/v1/apps/shop/live", bearer(newToken(t, "reader")), header("Traceparent", traceparent)))
			return len(told.of(id, "/apis/tekton.dev/v1/namespaces/app-shop-cicd/pipelineruns")) > 0
		})
		for _, path := range []string{tokenReviews, accessReviews} {
			if got := told.of(id, path); len(got) == 0 || !strings.HasSuffix(got[0], "-"+flags) {
				t.Errorf("%s was told %q", path, got)
			}
		}
	}
}
