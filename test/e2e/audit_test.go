package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
)

// line is one audit line.
type line map[string]any

// auditLines reads the edge's audit log, without a last line that is still
// being written.
func auditLines(t *testing.T) []line { t.Helper(); return auditLinesAt(t, gw) }

func auditLinesAt(t *testing.T, g *devenv.Gateway) []line {
	t.Helper()
	raw, err := os.ReadFile(g.Edges[0].Envoy.AccessLog)
	if err != nil {
		t.Fatal(err)
	}
	raw = raw[:bytes.LastIndexByte(raw, '\n')+1]
	var lines []line
	s := bufio.NewScanner(bytes.NewReader(raw))
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			t.Fatalf("an audit line is no JSON object: %v: %s", err, s.Bytes())
		}
		lines = append(lines, l)
	}
	return lines
}

// eventually polls until f is true. It is for what the gateway does after it
// has answered, such as writing the line of a call.
func eventually(t *testing.T, what string, f func() bool) {
	t.Helper()
	within(t, 15*time.Second, what, f)
}

// within is eventually for what may take longer.
func within(t *testing.T, most time.Duration, what string, f func() bool) {
	t.Helper()
	deadline := time.Now().Add(most)
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for !f() {
		if time.Now().After(deadline) {
			t.Fatalf("not in time: %s", what)
		}
		<-tick.C
	}
}

// linesAfter gives the audit lines that match once those of all calls answered
// so far are written: a later call's line marks the end.
func linesAfter(t *testing.T, match func(line) bool) []line {
	t.Helper()
	return linesAfterAt(t, gw, match)
}

func linesAfterAt(t *testing.T, g *devenv.Gateway, match func(line) bool) []line {
	t.Helper()
	mark := call(t, http.MethodGet, g.URL+"/v1/whoami", as("stranger")).traceID()
	var found []line
	eventually(t, "the audit line of a whoami", func() bool {
		all := auditLinesAt(t, g)
		if !slices.ContainsFunc(all, func(l line) bool { return l["traceId"] == mark }) {
			return false
		}
		found = slices.DeleteFunc(all, func(l line) bool { return !match(l) })
		return true
	})
	return found
}

// auditOf gives the one audit line of an answer.
func auditOf(t *testing.T, a answer) line {
	t.Helper()
	lines := linesAfter(t, func(l line) bool { return l["traceId"] == a.traceID() })
	if len(lines) != 1 {
		t.Fatalf("the call has %d audit lines, want one: %v", len(lines), lines)
	}
	return lines[0]
}

// expectLine compares a line's fixed fields. A nil wants the key to be absent.
func expectLine(t *testing.T, got line, want line) {
	t.Helper()
	for key, w := range want {
		g, there := got[key]
		switch {
		case w == nil && there:
			t.Errorf("%s is %v, want it absent: %v", key, g, got)
		case w != nil && g != w:
			t.Errorf("%s is %v, want %v: %v", key, g, w, got)
		}
	}
	if got["msg"] != "audit" {
		t.Errorf("msg is %v", got["msg"])
	}
	if _, err := time.Parse(time.RFC3339, toString(got["time"])); err != nil {
		t.Errorf("time: %v", err)
	}
	for _, number := range []string{"ms", "status"} {
		if _, isNumber := got[number].(float64); !isNumber {
			t.Errorf("%s is %v, not a number", number, got[number])
		}
	}
	for key, v := range got {
		if v == nil || v == "" || v == "-" {
			t.Errorf("%s has no value and should be absent: %v", key, got)
		}
	}
}

func toString(v any) string { s, _ := v.(string); return s }

// rule: R403, R404, R405, R083, R449
func TestEveryCallHasOneAuditLineThatSaysWhoDidWhatAndWhatCameOfIt(t *testing.T) {
	for _, tc := range []struct {
		name    string
		method  string
		path    string
		changes []change
		want    line
	}{
		{
			"a read that is allowed", "GET", "/v1/apps/gate-api/live",
			[]change{as("reader")},
			line{"op": "listLive", "tier": "T0", "app": "gate-api", "caller": username(t, "reader"), "decision": "allow", "status": 200.0, "method": "GET", "rule": nil, "error": nil, "onBehalfOf": nil},
		},
		{
			"a fleet read has no app", "GET", "/v1/live",
			[]change{as("reader")},
			line{"op": "listLiveRuns", "tier": "T0", "app": nil, "caller": username(t, "reader"), "decision": "allow", "status": 200.0},
		},
		{
			"a fleet read of one app names it", "GET", "/v1/live?app=shop",
			[]change{as("reader")},
			line{"op": "listLiveRuns", "app": "shop", "decision": "allow", "status": 200.0},
		},
		{
			"a delegate's read names the person", "GET", "/v1/apps/gate-api/live",
			[]change{as("delegate"), onBehalfOf("user:default/ana")},
			line{"op": "listLive", "caller": username(t, "delegate"), "onBehalfOf": "user:default/ana", "decision": "allow", "status": 200.0},
		},
		{
			"a call without a token", "GET", "/v1/apps/gate-api/live", nil,
			line{"op": "listLive", "tier": "T0", "caller": nil, "decision": "deny", "rule": "GP-AUTH-001", "status": 401.0},
		},
		{
			"a bad token", "GET", "/v1/whoami",
			[]change{bearer("nonsense")},
			line{"op": "whoami", "tier": "T0", "caller": nil, "decision": "deny", "rule": "GP-AUTH-002", "status": 401.0},
		},
		{
			"a stranger", "GET", "/v1/apps/gate-api/live",
			[]change{as("stranger")},
			line{"op": "listLive", "tier": "T0", "app": "gate-api", "caller": username(t, "stranger"), "decision": "deny", "rule": "GP-AUTHZ-001", "status": 403.0},
		},
		{
			"someone who may not speak for another", "GET", "/v1/apps/gate-api/live",
			[]change{as("reader"), onBehalfOf("ana")},
			line{"op": "listLive", "caller": username(t, "reader"), "decision": "deny", "rule": "GP-AUTH-003", "status": 403.0, "onBehalfOf": nil},
		},
		{
			"an app that is none", "GET", "/v1/apps/nowhere/live",
			[]change{as("reader")},
			line{"op": "listLive", "app": "nowhere", "caller": username(t, "reader"), "decision": "deny", "rule": "GP-API-404", "status": 404.0},
		},
		{
			"a parameter that the backend refuses", "GET", "/v1/live?limit=0",
			[]change{as("reader")},
			line{"op": "listLiveRuns", "caller": username(t, "reader"), "decision": "allow", "rule": "GP-API-400", "status": 400.0},
		},
		{
			"a write that is refused", "POST", "/v1/apps/gate-api/pipelineruns/x/cancel",
			[]change{as("reader")},
			line{"op": "cancelPipelineRun", "tier": "T1", "app": "gate-api", "decision": "deny", "rule": "GP-AUTHZ-001", "status": 403.0, "method": "POST"},
		},
		{
			"no operation", "GET", "/v1/nothing",
			[]change{as("reader")},
			line{"op": "_unmatched", "tier": nil, "decision": "deny", "rule": "GP-EDGE-404", "status": 404.0},
		},
		{
			"no operation of this method", "DELETE", "/v1/live",
			[]change{as("reader")},
			line{"op": "_unmatched", "decision": "deny", "rule": "GP-EDGE-405", "status": 405.0, "method": "DELETE"},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a := call(t, tc.method, gw.URL+tc.path, tc.changes...)
			got := auditOf(t, a)
			expectLine(t, got, tc.want)
			if _, hasError := got["error"]; hasError != (a.status >= 400) {
				t.Errorf("status %d with error %v", a.status, got["error"])
			}
			if got["requestId"] == nil {
				t.Errorf("no request id: %v", got)
			}
		})
	}
}

// rule: R413
func TestNoSecretOfACallIsInTheAuditLog(t *testing.T) {
	const marker = "s3cr3t-m4rker"
	get(t, "/v1/whoami", bearer(marker))
	get(t, "/v1/whoami", header("X-Glidepath-Authorization", "Bearer "+marker))
	get(t, "/v1/whoami", header("Authorization", "Basic "+marker))
	get(t, "/v1/whoami", as("reader"), header("Cookie", "session="+marker))
	call(t, http.MethodPost, gw.URL+"/v1/apps/gate-api/pipelineruns/x/rerun", as("operator"), header("Idempotency-Key", marker))
	linesAfter(t, func(line) bool { return false })
	for _, file := range logs(t) {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		text := string(raw)
		if strings.Contains(text, marker) {
			t.Errorf("%s holds a secret that a caller sent", file)
		}
		for caller, token := range tokens {
			if strings.Contains(text, token) || strings.Contains(text, token[len(token)-40:]) {
				t.Errorf("%s holds the token of %s", file, caller)
			}
		}
	}
}

// logs lists what the edge and the gateway's own processes have written.
func logs(t *testing.T) []string {
	t.Helper()
	files := []string{gw.Edges[0].Envoy.AccessLog, gw.Edges[0].Envoy.Process.Log(), gw.Edges[0].Authz.Log(), gw.Edges[0].XDS.Log()}
	for _, b := range slices.Concat(gw.Livehubs, gw.Runs) {
		files = append(files, b.Process.Log())
	}
	return files
}

func TestTheRequestIDIsTheEdgesOwn(t *testing.T) {
	a := get(t, "/v1/whoami", as("reader"), header("X-Request-Id", "chosen-by-the-caller"))
	if id := auditOf(t, a)["requestId"]; id == "chosen-by-the-caller" {
		t.Error("a caller chose the request id that joins audit lines")
	}
}

// rule: R449
func TestACallersTraceIsJoined(t *testing.T) {
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	for name, path := range map[string]string{"allowed": "/v1/apps/gate-api/live", "not there": "/v1/nothing", "refused": "/v1/apps/nowhere/live"} {
		t.Run(name, func(t *testing.T) {
			a := get(t, path, as("reader"), header("Traceparent", "00-"+trace+"-00f067aa0ba902b7-01"))
			if a.traceID() != trace {
				t.Errorf("the answer's trace id is %q", a.traceID())
			}
			if a.status >= 400 && a.problem(t).TraceID != trace {
				t.Errorf("the refusal's trace id is %q", a.problem(t).TraceID)
			}
		})
	}
}
