package e2e_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/devenv"
)

// wayCallers are callers of every kind of answer: what each sends besides the
// call.
var wayCallers = map[string]func() []change{
	"nobody":     func() []change { return nil },
	"a stranger": func() []change { return []change{as("stranger")} },
	"a reader":   func() []change { return []change{as("reader")} },
	"a delegate for a person": func() []change {
		return []change{as("delegate"), onBehalfOf("user:default/ana")}
	},
	"a reader who names a person": func() []change { return []change{as("reader"), onBehalfOf("user:default/ana")} },
	"one whose token is none":     func() []change { return []change{bearer("nonsense")} },
}

// Every operation, for each of these callers, has one answer, one decision and
// one audit line, whichever way the call came in.
//
// rule: R457, R063
func TestTheWaysInGiveOneAnswerOneDecisionAndOneLine(t *testing.T) {
	narrow, _ := clusterGateway(t)
	ways := []way{service(), peopleRoute(), narrow, serviceProxy(t)}
	type cell struct{ caller, op string }
	byWay := make([]map[cell]answer, len(ways))
	for i, w := range ways {
		byWay[i] = map[cell]answer{}
		for caller, changes := range wayCallers {
			for _, op := range api.Operations() {
				byWay[i][cell{caller, op.ID}] = w.send(t, op.Stream, op.Method, calls[op.ID], changes()...)
			}
		}
	}
	var all []answer
	for _, answers := range byWay {
		all = slices.AppendSeq(all, maps.Values(answers))
	}
	lines := linesOf(t, gw, all)
	for c, direct := range byWay[0] {
		want := lineOf(t, lines, direct)
		for i, w := range ways[1:] {
			a := byWay[i+1][c]
			where := c.caller + ", " + c.op + ", by " + w.name
			sameAnswer(t, where, a, direct)
			if got := lineOf(t, lines, a); !maps.Equal(got, want) {
				t.Errorf("%s: the line is\n%v\nand that of the Service\n%v", where, got, want)
			}
		}
	}
}

// byTrace gives the audit lines of all calls so far by their trace.
func byTrace(t *testing.T) map[string][]line { t.Helper(); return byTraceAt(t, gw) }

func byTraceAt(t *testing.T, g *devenv.Gateway) map[string][]line {
	t.Helper()
	out := map[string][]line{}
	for _, l := range linesAfterAt(t, g, func(line) bool { return true }) {
		trace := toString(l["traceId"])
		out[trace] = append(out[trace], l)
	}
	return out
}

// linesOf is byTraceAt once each answer has its line. That of a stream comes when
// its end has got through to the edge.
func linesOf(t *testing.T, g *devenv.Gateway, answers []answer) map[string][]line {
	t.Helper()
	var lines map[string][]line
	eventually(t, "each answer has its line", func() bool {
		lines = byTraceAt(t, g)
		return !slices.ContainsFunc(answers, func(a answer) bool { return len(lines[a.traceID()]) == 0 })
	})
	return lines
}

// lineOf gives what the line of an answer says, without what is each call's own.
func lineOf(t *testing.T, lines map[string][]line, a answer) line {
	t.Helper()
	found := lines[a.traceID()]
	if len(found) != 1 {
		t.Fatalf("the call of trace %q has %d lines", a.traceID(), len(found))
	}
	out := maps.Clone(found[0])
	for _, own := range []string{"time", "ms", "traceId", "requestId"} {
		delete(out, own)
	}
	return out
}

// sameAnswer compares what two ways answered to the same call. A proxy may add
// headers of its own; it may change none of the gateway's.
func sameAnswer(t *testing.T, where string, got, want answer) {
	t.Helper()
	plain := func(a answer) string {
		body := string(uncompressed(t, a))
		if a.traceID() == "" {
			t.Fatalf("%s: %d without a trace id: %.200s", where, a.status, body)
		}
		return strings.ReplaceAll(body, a.traceID(), "TRACE")
	}
	if got.status != want.status || plain(got) != plain(want) {
		t.Errorf("%s: got %d %.300s\nwant %d %.300s", where, got.status, plain(got), want.status, plain(want))
	}
	for name, values := range want.header {
		switch name {
		case "Date", "X-Glidepath-Trace-Id":
		default:
			if have := got.header[name]; len(have) < len(values) || !slices.Equal(have[len(have)-len(values):], values) {
				t.Errorf("%s: %s is %q, want %q", where, name, got.header[name], values)
			}
		}
	}
}

// rule: R458, R386
func TestNoWayInLeadsToAnythingButTheAPI(t *testing.T) {
	narrow, wide := clusterGateway(t)
	inside := append(slices.Clone(pages), "/internal/events/tap", "/internal/events/", "/v1/internal/events/tap", "/v1", "/v1/", "/v2/live", "/apis", "//internal//events/tap",
		"/v1/../internal/events/tap", "/v1/..;/internal/events/tap")
	for _, w := range []way{service(), peopleRoute(), narrow, wide, serviceProxy(t)} {
		t.Run(w.name, func(t *testing.T) {
			for _, page := range inside {
				for _, method := range []string{http.MethodGet, http.MethodPost} {
					reached := len(planned.Requests())
					a := w.send(t, false, method, page, as("delegate"), onBehalfOf("user:default/ana"))
					if a.status != http.StatusNotFound {
						t.Errorf("%s %s: got %d %.200s", method, page, a.status, a.body)
					}
					if n := len(planned.Requests()); n != reached {
						t.Errorf("%s %s reached a backend", method, page)
					}
				}
			}
			ok(t, w.send(t, false, http.MethodGet, "/v1/whoami", as("reader")))
		})
	}
}

// rule: R458
func TestTheRouteForPeopleServesItsHostAlone(t *testing.T) {
	_, wide := clusterGateway(t)
	for _, w := range []way{peopleRoute(), wide} {
		for host, want := range map[string]int{
			w.host: 200, strings.ToUpper(w.host): 200, w.host + ":8443": 200,
			"glidepath-api.platform-system.svc.cluster.local": 404, "localhost": 404, w.host + ".example": 404, "127.0.0.1": 404,
		} {
			w.host = host
			a := w.send(t, false, http.MethodGet, "/v1/whoami", as("reader"))
			if a.status != want {
				t.Errorf("%s, under %s: got %d, want %d", w.name, host, a.status, want)
			}
			if want == http.StatusNotFound {
				refused(t, a, 404, "GP-EDGE-404")
				expectLine(t, auditOf(t, a), line{"op": "_unmatched", "decision": "deny", "rule": "GP-EDGE-404", "status": 404.0})
			}
		}
	}
}

// What a Gateway or a caller before it says of the caller counts for nothing.
func TestHeadersOfAProxyAreNobodysIdentity(t *testing.T) {
	narrow, wide := clusterGateway(t)
	for _, w := range []way{peopleRoute(), narrow, wide} {
		for _, name := range []string{
			"X-Glidepath-Identity", "X-Forwarded-User", "X-Remote-User", "X-Forwarded-Client-Cert", "X-Forwarded-For", "X-Auth-Request-User", "Impersonate-User",
		} {
			refused(t, w.send(t, false, http.MethodGet, "/v1/whoami", header(name, "people:ana")), 401, "GP-AUTH-001")
		}
		a := ok(t, w.send(t, false, http.MethodGet, "/v1/whoami", as("stranger"), header("Impersonate-User", "people:ana"), header("X-Remote-User", "people:ana")))
		if !strings.Contains(string(a.body), username(t, "stranger")) {
			t.Errorf("%s: got %s", w.name, a.body)
		}
	}
}
