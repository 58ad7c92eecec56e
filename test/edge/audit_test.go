package edge

import (
	"context"
	"io"
	"net/http"
	"regexp"
	"strings"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
)

// The keys of shapes that every line of an answered, allowed call has, with
// what their values look like.
//
// rule: R403, R404
func TestTheLineOfACall(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	l := e.lineOf(t, e.get(t, "/v1/apps/shop/live"))
	l.want(t, line{
		"msg": "audit", "op": "listLive", "tier": "T0", "app": "shop", "caller": "system:serviceaccount:shop:reader",
		"onBehalfOf": "ada", "decision": "allow", "status": 200.0, "method": "GET",
	})
	for key, pattern := range map[string]string{
		"time":      `^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$`,
		"traceId":   `^[0-9a-f]{32}$`,
		"requestId": `^[0-9a-f-]{36}$`,
	} {
		if s, ok := l[key].(string); !ok || !regexp.MustCompile(pattern).MatchString(s) {
			t.Errorf("%s is %v", key, l[key])
		}
	}
	if ms, ok := l["ms"].(float64); !ok || ms < 0 || ms > 20_000 {
		t.Errorf("ms is %v", l["ms"])
	}
	if len(l) != 13 { // those, and no more: rule and error have no value
		t.Errorf("the line has %d keys: %v", len(l), l)
	}
	for key, value := range l {
		if value == "" || value == nil || value == "-" {
			t.Errorf("%s is there without a value", key)
		}
	}
}

func TestTheAuditHeader(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	for name, tt := range map[string]struct {
		method, path string
		want         line
	}{
		"a re-run adds its own fields, with their types": {"POST", "/v1/apps/shop/pipelineruns/x/rerun?do=audit", line{
			"name": "shop-build-x7k2p", "dryRun": true, "created": false, "replayed": true, "idempotencyKeySha256": "0123456789ab",
			// A promotion's, and nobody's.
			"prUrl": nil, "secret": nil,
		}},
		"a promotion adds others": {"POST", "/v1/apps/shop/environments/prod/promote?do=audit", line{
			"name": "shop-build-x7k2p", "dryRun": true, "prUrl": "https://example.test/1", "secret": nil,
		}},
		"a read adds none": {"GET", "/v1/live?do=audit", line{
			"name": nil, "dryRun": nil, "created": nil, "prUrl": nil, "secret": nil,
		}},
		"one that cannot be read adds none": {"POST", "/v1/apps/shop/pipelineruns/x/rerun?do=audit-garbage", line{"name": nil}},
		"one that is too large adds none":   {"POST", "/v1/apps/shop/pipelineruns/x/rerun?do=audit-large", line{"name": nil}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := e.call(t, tt.method, tt.path, nil)
			if v := resp.Header.Values("X-Glidepath-Audit"); len(v) != 0 {
				t.Errorf("the caller sees it: %q", v)
			}
			l := e.lineOf(t, resp)
			l.want(t, tt.want)
			// What the edge says of a call is not the backend's to say.
			l.want(t, line{"caller": "system:serviceaccount:shop:reader", "status": 200.0})
		})
	}
}

// rule: R403, R415
func TestACallerThatLeaves(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	for name, tt := range map[string]struct{ method, path, op, token, decision string }{
		"a read that was being answered":  {"GET", "/v1/live/taskruns?do=hang", "listLiveTaskRuns", tokenAllow, "allow"},
		"a write that was being answered": {"POST", "/v1/apps/shop/pipelineruns/x/rerun?do=hang", "rerunPipelineRun", tokenAllow, "allow"},
		"a call that was being decided":   {"GET", "/v1/apps/shop/live", "listLive", tokenHang, "deny"},
	} {
		t.Run(name, func(t *testing.T) {
			before := e.backend.count("do=hang")
			arrived := func() bool { return e.backend.count("do=hang") > before }
			if tt.token == tokenHang {
				arrived = func() bool { return e.authz.last(asksFor(tt.op)) != nil }
			}
			e.leave(t, tt.method, tt.path, arrived, "Authorization", tt.token)
			if tt.token != tokenHang {
				e.backend.wantLeft(t)
			}
			of := func(l line) bool { return l["op"] == tt.op }
			e.lineWhere(t, "of "+tt.op, of).want(t, line{
				"status": 499.0, "decision": tt.decision, "rule": nil, "error": "downstream_remote_disconnect", "method": tt.method,
			})
			e.fence(t)
			e.lineWhere(t, "of "+tt.op, of) // still one
		})
	}
}

// asksFor finds the checks of one operation.
func asksFor(op string) func(*authv3.CheckRequest) bool {
	return func(r *authv3.CheckRequest) bool { return r.GetAttributes().GetContextExtensions()["op"] == op }
}

func TestACallerThatLeavesInTheMiddleOfAFailureChangesNothingInItsLine(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/v1/live/taskruns?do=fail-slowly", nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	_ = resp.Body.Close()
	e.backend.wantLeft(t)
	e.lineOf(t, resp).want(t, line{"status": 502.0, "rule": "GP-API-502", "error": "the source failed", "decision": "allow"})
}

// rule: R414, R449
func TestAStreamHasItsLineWhenItEnds(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/v1/events?do=stream", nil)
	if err != nil {
		t.Fatal(err)
	}
	begin := time.Now()
	resp, err := e.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	first := make([]byte, 5)
	if _, err := io.ReadFull(resp.Body, first); err != nil || string(first) != "id: 1" {
		t.Fatalf("the first event: %q, %v", first, err)
	}
	e.fence(t)
	isStream := func(l line) bool { return l["op"] == "streamEvents" }
	for _, l := range e.lines(t) {
		if isStream(l) {
			t.Fatalf("a line before the end: %v", l)
		}
	}
	leave()
	open := time.Since(begin)
	e.backend.wantLeft(t)
	l := e.lineWhere(t, "of the stream", isStream)
	l.want(t, line{"traceId": resp.Header.Get("X-Glidepath-Trace-Id")})
	l.want(t, line{"status": 200.0, "decision": "allow", "rule": nil, "error": nil})
	if ms, ok := l["ms"].(float64); !ok || ms < float64(open.Milliseconds())-50 || ms > float64(open.Milliseconds())+5000 {
		t.Errorf("ms is %v, open were %s", l["ms"], open)
	}
}

// rule: R403
func TestManyCallsHaveOneLineEach(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	calls := map[string]int{} // by trace
	for range 20 {
		for _, resp := range []*http.Response{
			e.get(t, "/v1/live"), e.get(t, "/v1/live", "Authorization", tokenDeny), e.get(t, "/v1/nothing"),
			e.get(t, "/v1/apps/a%20b/live"), e.get(t, "/v1/live?do=fail"), e.call(t, http.MethodPost, "/v1/live", strings.NewReader("x")),
		} {
			calls[resp.Header.Get("X-Glidepath-Trace-Id")]++
		}
	}
	e.fence(t)
	lines, want := e.lines(t), len(calls)+1 // and the fence's
	for _, l := range lines {
		if s, ok := l["traceId"].(string); ok {
			calls[s]--
		}
	}
	if len(lines) != want {
		t.Errorf("%d lines, want %d", len(lines), want)
	}
	for trace, n := range calls {
		if n > 0 {
			t.Errorf("the call of trace %s has no line", trace)
		}
	}
}
