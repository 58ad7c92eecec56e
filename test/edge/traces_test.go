package edge

import (
	"net/http"
	"strings"
	"testing"
)

// rule: R449
func TestTheTraceIsJoinedAndTold(t *testing.T) {
	t.Parallel()
	const trace, span = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
	all, none := start(t, setup{ratio: 1}), start(t, setup{ratio: 0})
	for name, tt := range map[string]struct {
		edge        *edge
		traceparent string
		joined      bool
		flags       string // what the backend is told
	}{
		"a caller's sampled trace, sampling nothing":      {none, "00-" + trace + "-" + span + "-01", true, "01"},
		"a caller's unsampled trace, sampling everything": {all, "00-" + trace + "-" + span + "-00", true, "00"},
		"a trace of a later version":                      {all, "01-" + trace + "-" + span + "-01", true, "01"},
		"a trace that begins here, sampling everything":   {all, "", false, "01"},
		"a trace that begins here, sampling nothing":      {none, "", false, "00"},
		"a malformed one is none":                         {all, "00-zzz-" + span + "-01", false, "01"},
		"one with a short trace is none":                  {all, "00-" + trace[1:] + "-0" + span + "-01", false, "01"},
		"one in upper case is none":                       {all, "00-" + strings.ToUpper(trace) + "-" + span + "-01", false, "01"},
		"one of a forbidden version is none":              {all, "ff-" + trace + "-" + span + "-01", false, "01"},
		"a trace of zeros is none":                        {all, "00-" + strings.Repeat("0", 32) + "-" + span + "-01", false, "01"},
		"a parent of zeros is none":                       {all, "00-" + trace + "-" + strings.Repeat("0", 16) + "-01", false, "01"},
		"two are none":                                    {all, "00-" + trace + "-" + span + "-01,00-" + trace + "-" + span + "-01", false, "01"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var headers []string
			if tt.traceparent != "" {
				headers = []string{"Traceparent", tt.traceparent}
			}
			resp := tt.edge.get(t, "/v1/live", headers...)
			told := resp.Header.Get("X-Glidepath-Trace-Id")
			if tt.joined != (told == trace) || len(told) != 32 {
				t.Errorf("the caller is told %q", told)
			}
			backend := received(t, resp)
			parts := strings.Split(backend.Get("Traceparent"), "-")
			if len(parts) != 4 || parts[1] != told || parts[3] != tt.flags || parts[2] == span {
				t.Errorf("the backend is told %q", parts)
			}
			if got := backend.Get("X-Glidepath-Internal-Traceparent"); got != "" {
				t.Errorf("the backend is told %q besides", got)
			}
			if !tt.joined {
				tt.edge.lineOf(t, resp).want(t, line{"traceId": told})
			}
		})
	}
}

// rule: R449
func TestEveryAnswerNamesItsTrace(t *testing.T) {
	t.Parallel()
	e := start(t, setup{policy: "version: 1\noperations:\n  listLiveRuns: {timeout: 200ms}\n"})
	for name, resp := range map[string]*http.Response{
		"an answer":            e.get(t, "/v1/apps/shop/live"),
		"a refusal":            e.get(t, "/v1/live", "Authorization", tokenDeny),
		"no such path":         e.get(t, "/v1/nothing"),
		"no such method":       e.call(t, http.MethodPut, "/v1/live", nil),
		"a bad path":           e.get(t, "/v1/apps/a%20b/live"),
		"a timeout":            e.get(t, "/v1/live?do=hang"),
		"nothing new":          e.get(t, "/v1/apps/shop/live?do=not-modified"),
		"a backend's failure":  e.get(t, "/v1/live?do=fail"),
		"a backend's nonsense": e.get(t, "/v1/apps/shop/live?do=garbage"),
	} {
		t.Run(name, func(t *testing.T) { e.lineOf(t, resp) })
	}
}

func TestSpansAreExportedUnderTheOperationsName(t *testing.T) {
	t.Parallel()
	collector := startCollector(t)
	e := start(t, setup{ratio: 1, otlp: "http://" + collector.addr})
	resp := e.get(t, "/v1/apps/shop/live")
	collector.waitFor(t, []string{
		"\x2a\x08listLive", // the name, field 5 of a span
		"glidepath.op", "glidepath.tier", "T0", "glidepath.app", "shop", "glidepath.decision", "allow",
		"glidepath.caller", "system:serviceaccount:shop:reader", "glidepath.on_behalf_of", "ada", "glidepath-edge",
	})
	e.lineOf(t, resp)
}
