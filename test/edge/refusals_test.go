package edge

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/problem"
)

// rule: R404
func TestARefusalPassesUnchanged(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	resp := e.get(t, "/v1/live?refused", "Authorization", tokenDeny)
	if got := string(readAll(t, resp)); resp.StatusCode != http.StatusForbidden || got != refusalBody {
		t.Errorf("status %d, body %q", resp.StatusCode, got)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	e.lineOf(t, resp).want(t, line{
		"msg": "audit", "op": "listLiveRuns", "tier": "T0", "status": 403.0, "decision": "deny",
		"rule": "GP-AUTHZ-001", "error": "refused by authz", "caller": nil, "app": nil, "onBehalfOf": nil, "method": "GET",
	})
	if e.backend.count("refused") != 0 {
		t.Error("the refused call reached the backend")
	}
}

// rule: R405
func TestARefusedOperationIsNamedInItsLine(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	for _, op := range api.Operations() {
		t.Run(op.ID, func(t *testing.T) {
			t.Parallel()
			path := strings.NewReplacer("{", "", "}", "").Replace(op.Path) // a variable's name will do for it
			resp := e.call(t, op.Method, path, nil, "Authorization", tokenDeny)
			if resp.StatusCode != http.StatusForbidden {
				t.Errorf("status %d", resp.StatusCode)
			}
			e.lineOf(t, resp).want(t, line{
				"op": op.ID, "tier": string(op.Tier), "decision": "deny", "status": 403.0, "rule": "GP-AUTHZ-001", "method": op.Method,
			})
		})
	}
}

// rule: R387
func TestAuthzAway(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	for name, tt := range map[string]struct{ method, path, op, tier string }{
		"a read":                   {"GET", "/v1/live?away", "listLiveRuns", "T0"},
		"a write":                  {"POST", "/v1/apps/shop/pipelineruns/x/rerun?away", "rerunPipelineRun", "T1"},
		"a stream":                 {"GET", "/v1/events?away", "streamEvents", "T0"},
		"what authz itself serves": {"GET", "/v1/whoami?away", "whoami", "T0"},
		"a path of no operation":   {"GET", "/v1/nothing?away", "_unmatched", ""},
		"a method of none":         {"PUT", "/v1/live?away", "_unmatched", ""},
	} {
		t.Run("is a refusal of "+name, func(t *testing.T) {
			if e.authz.served != nil {
				e.authz.stop()
				e.authz.served = nil
			}
			resp := e.call(t, tt.method, tt.path, nil)
			wantProblem(t, resp, problem.EdgeUnavailable)
			want := line{
				"op": tt.op, "tier": nil, "status": 503.0, "decision": "deny", "rule": "GP-EDGE-503",
				"error": "ext_authz_error", "caller": nil, "app": nil,
			}
			if tt.tier != "" {
				want["tier"] = tt.tier
			}
			e.lineOf(t, resp).want(t, want)
		})
	}
	if n := e.backend.count("away"); n != 0 {
		t.Errorf("%d calls reached the backend undecided", n)
	}
	t.Run("ends when authz is back", func(t *testing.T) {
		e.authz.start(t)
		eventually(t, "calls are decided again", func() bool {
			return e.get(t, "/v1/live").StatusCode == http.StatusOK
		})
	})
}

func TestAuthzThatDoesNotAnswerIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	begin := time.Now()
	resp := e.get(t, "/v1/live?hang", "Authorization", tokenHang)
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("the answer took %s", took)
	}
	wantProblem(t, resp, problem.EdgeUnavailable)
	e.lineOf(t, resp).want(t, line{"status": 503.0, "decision": "deny", "rule": "GP-EDGE-503"})
	if n := e.backend.count("hang"); n != 0 {
		t.Error("the call reached the backend undecided")
	}
}
