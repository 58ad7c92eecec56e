package e2e_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// raw sends bytes that no HTTP client would and reads one answer.
func raw(t *testing.T, text string) answer {
	t.Helper()
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(gw.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	res, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatalf("%.80q: %v", text, err)
	}
	defer func() { _ = res.Body.Close() }()
	b, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer{status: res.StatusCode, header: res.Header, body: b}
}

func rawGet(t *testing.T, target string, headers ...string) answer {
	t.Helper()
	lines := append([]string{
		"GET " + target + " HTTP/1.1", "Host: gateway", "Connection: close", "Authorization: Bearer " + tokens["reader"],
	}, headers...)
	return raw(t, strings.Join(lines, "\r\n")+"\r\n\r\n")
}

// rule: R387
func TestPathsThatMeanTwoThingsAreRefused(t *testing.T) {
	for target, want := range map[string]struct {
		status int
		rule   string
	}{
		"/v1/apps/gate-api%2flive":        {400, "GP-EDGE-400"},
		"/v1/apps/gate-api%2Flive":        {400, "GP-EDGE-400"},
		"/v1/apps/gate-api/live%00":       {400, "GP-EDGE-400"},
		"/v1/apps/gate-api%5clive":        {400, "GP-EDGE-400"},
		"/v1/apps/a%20b/live":             {400, "GP-EDGE-400"},
		"/v1/apps/gate-api%/live":         {400, "GP-EDGE-400"},
		"/v1/apps/gate-api;x=1/live":      {400, "GP-API-400"},
		"/v1/apps/a../live":               {400, "GP-API-400"},
		"/v1/apps/GATE-API/live":          {400, "GP-API-400"},
		"/V1/apps/gate-api/live":          {404, "GP-EDGE-404"},
		"/v1/apps/gate-api/LIVE":          {404, "GP-EDGE-404"},
		"/v1/apps/gate-api/live/":         {404, "GP-EDGE-404"},
		"/v1/apps//live":                  {404, "GP-EDGE-404"},
		"/v1/whoami/../live/x":            {404, "GP-EDGE-404"},
		"/internal/events/tap":            {404, "GP-EDGE-404"},
		"/healthz":                        {404, "GP-EDGE-404"},
		"/readyz":                         {404, "GP-EDGE-404"},
		"/metrics":                        {404, "GP-EDGE-404"},
		"/":                               {404, "GP-EDGE-404"},
		"/v1":                             {404, "GP-EDGE-404"},
		"/v1/apps/gate-api/live/../../..": {404, "GP-EDGE-404"},
	} {
		t.Run(target, func(t *testing.T) { refused(t, rawGet(t, target), want.status, want.rule) })
	}
}

func TestPathsAreMadeCanonicalBeforeTheyAreRouted(t *testing.T) {
	for _, target := range []string{"/v1/apps/gate%2dapi/live", "/v1/apps/x/%2e%2e/gate-api/live", "//v1//apps/gate-api///live", "/v1/./apps/gate-api/live", "/v1/x/../apps/gate-api/live", "/v1/apps/shop/../gate-api/live?x=%2f"} {
		a := rawGet(t, target)
		if a.status != http.StatusOK {
			t.Errorf("%s: got %d %.200s", target, a.status, a.body)
			continue
		}
		if app := auditOf(t, a)["app"]; app != "gate-api" {
			t.Errorf("%s was decided for %v", target, app)
		}
	}
}

// rule: R387
func TestAMethodThatAPathDoesNotHaveIs405WithThoseItHas(t *testing.T) {
	for _, tc := range []struct {
		method, path string
		status       int
		allow        string
	}{
		{"POST", "/v1/apps/gate-api/live", 405, "GET"},
		{"DELETE", "/v1/whoami", 405, "GET"},
		{"PATCH", "/v1/live", 405, "GET"},
		{"GET", "/v1/apps/gate-api/pipelineruns/x/cancel", 405, "POST"},
		{"HEAD", "/v1/live", 405, "GET"},
		{"OPTIONS", "/v1/live", 405, "GET"},
		// Envoy's parser knows no such methods, so there is no path yet.
		{"BREW", "/v1/live", 400, ""},
		{"get", "/v1/live", 400, ""},
	} {
		t.Run(tc.method+" "+tc.path, func(t *testing.T) {
			_, a, err := try(t.Context(), tc.method, gw.URL+tc.path, as("reader"))
			if err != nil {
				t.Fatal(err)
			}
			if a.status != tc.status || a.header.Get("Allow") != tc.allow {
				t.Errorf("got %d, Allow: %q; want %d, %q", a.status, a.header.Get("Allow"), tc.status, tc.allow)
			}
			if tc.method != "HEAD" {
				refusal(t, a)
			}
		})
	}
	a := call(t, "DELETE", gw.URL+"/v1/nothing", as("reader"))
	refused(t, a, 404, "GP-EDGE-404")
}

// rule: R387
func TestWhatTheEdgeItselfRefusesIsJSONToo(t *testing.T) {
	big := strings.Repeat("x", 100<<10)
	for _, tc := range []struct {
		name, text string
		status     int
	}{
		{"headers that are too large", "GET /v1/whoami HTTP/1.1\r\nHost: g\r\nX-Big: " + big + "\r\n\r\n", 431},
		{"a header name with an underscore", "GET /v1/whoami HTTP/1.1\r\nHost: g\r\nx_glidepath_identity: a\r\n\r\n", 400},
		{"no host", "GET /v1/whoami HTTP/1.1\r\n\r\n", 400},
		{"an old protocol", "GET /v1/whoami HTTP/1.0\r\n\r\n", 426},
		{"a body of two lengths", "POST /v1/whoami HTTP/1.1\r\nHost: g\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
		{"a line that is no request", "GET\r\n\r\n", 400},
	} {
		t.Run(tc.name, func(t *testing.T) {
			refused(t, raw(t, tc.text), tc.status, fmt.Sprintf("GP-EDGE-%d", tc.status))
		})
	}
}

func TestABackendSeesNoHeaderThatACallerMadeUpForIt(t *testing.T) {
	planned.Reset()
	a := get(t, "/v1/apps/gate-api/releases", as("reader"),
		header("X-Glidepath-Identity", "forged"), header("X-Glidepath-Identity", "twice"),
		header("X-Envoy-Original-Path", "/v1/x"), header("X-Envoy-Upstream-Rq-Timeout-Ms", "1"), header("X-Envoy-Retry-On", "5xx"),
		header("X-Glidepath-Audit", "forged"), header("X-Forwarded-User", "root"), header("X-Remote-User", "root"),
		header("Cookie", "session=abc"))
	ok(t, a)
	seen := planned.Requests()
	if len(seen) != 1 {
		t.Fatalf("%d requests reached the backend", len(seen))
	}
	h := seen[0].Header
	if id := h.Values("X-Glidepath-Identity"); len(id) != 1 || strings.Count(id[0], ".") != 2 {
		t.Errorf("the identity is %d values", len(id))
	}
	for _, name := range []string{
		"Authorization", "X-Glidepath-Authorization", "X-Glidepath-On-Behalf-Of", "X-Glidepath-Audit",
		"X-Envoy-Original-Path", "X-Envoy-Upstream-Rq-Timeout-Ms", "X-Envoy-Retry-On", "Cookie",
	} {
		if v := h.Values(name); len(v) != 0 {
			t.Errorf("the backend sees %s", name)
		}
	}
}

// rule: R387
func TestACallRoundTheEdgeIsRefused(t *testing.T) {
	backend := gw.Livehubs[0].URL
	for name, changes := range map[string][]change{
		"with nothing":            nil,
		"with a cluster's token":  {as("reader")},
		"with a made-up identity": {header("X-Glidepath-Identity", "eyJhbGciOiJub25lIn0.e30.")},
		"with a token as one":     {header("X-Glidepath-Identity", tokens["reader"])},
	} {
		t.Run(name, func(t *testing.T) {
			_, a, err := try(t.Context(), http.MethodGet, backend+"/v1/apps/gate-api/live", changes...)
			if err != nil {
				t.Fatal(err)
			}
			refused(t, a, 401, "GP-EDGE-401")
		})
	}
}

// rule: R415
func TestACallerThatLeavesIsA499(t *testing.T) {
	release := make(chan struct{})
	arrived := make(chan struct{}, 1)
	planned.Answer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		arrived <- struct{}{}
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer planned.Answer(nil)
	defer close(release)
	for _, tc := range []struct{ method, op, caller string }{
		{"GET", "listReleases", "reader"}, {"POST", "cancelPipelineRun", "operator"},
	} {
		t.Run(tc.op, func(t *testing.T) {
			const trace = "4bf92f3577b34da6a3ce929d0e0e4%03d"
			id := fmt.Sprintf(trace, len(tc.op))
			ctx, cancel := context.WithCancel(t.Context())
			gone := make(chan error, 1)
			go func() {
				_, _, err := try(ctx, tc.method, gw.URL+calls[tc.op], as(tc.caller), header("Traceparent", "00-"+id+"-00f067aa0ba902b7-01"))
				gone <- err
			}()
			select {
			case <-arrived:
			case <-time.After(callTimeout):
				t.Fatal("the call did not reach the backend")
			}
			cancel()
			if err := <-gone; !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
			var found []line
			eventually(t, "the line of the call that was left", func() bool {
				found = linesAfter(t, func(l line) bool { return l["traceId"] == id })
				return len(found) > 0
			})
			if len(found) != 1 {
				t.Fatalf("%d lines: %v", len(found), found)
			}
			expectLine(t, found[0], line{"op": tc.op, "status": 499.0, "decision": "allow", "caller": username(t, tc.caller), "method": tc.method})
		})
	}
}
