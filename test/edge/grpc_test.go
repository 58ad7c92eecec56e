package edge

import (
	"strings"
	"testing"

	"hangar.io/glidepath/internal/problem"
)

// Envoy answers a request that calls itself gRPC as gRPC would: 200 without a
// body. Here it is refused like any other, whoever else is up.
//
// rule: R387
func TestACallThatSaysItIsGRPCIsRefusedAsJSON(t *testing.T) {
	t.Parallel()
	want := problem.EdgeBadRequest
	want.Message, want.Hint = "this API is not served as gRPC", "send another Content-Type than application/grpc, or none"
	for name, s := range map[string]setup{"with authz": {}, "without authz": {alone: true}} {
		e := start(t, s)
		http2 := *e
		http2.overHTTP2(t)
		for protocol, e := range map[string]*edge{"HTTP/1.1": e, "HTTP/2": &http2} {
			for kind, tt := range map[string]struct{ method, path, contentType, body string }{
				"a read":                       {"GET", "/v1/live", "application/grpc", ""},
				"a read of an app":             {"GET", "/v1/apps/shop/live", "application/grpc+json", ""},
				"an operation of authz's own":  {"GET", "/v1/whoami", "application/grpc", ""},
				"a path of no operation":       {"POST", "/glidepath.v1.Runs/List", "application/grpc", "\x00\x00\x00\x00\x00"},
				"a path that is not canonical": {"GET", "/v1/apps/a%20b/live", "application/grpc", ""},
				"an encoded slash":             {"GET", "/v1/apps/a%2fb/live", "application/grpc", ""},
				"a call with a body":           {"POST", "/v1/live", "application/grpc", strings.Repeat("x", 12<<10)},
				"a call with a body too large": {"POST", "/v1/apps/shop/cicd/validations", "application/grpc", strings.Repeat("x", 2<<20)},
			} {
				t.Run(kind+" over "+protocol+" "+name, func(t *testing.T) {
					t.Parallel()
					resp := e.call(t, tt.method, tt.path, strings.NewReader(tt.body), "Content-Type", tt.contentType, "Te", "trailers")
					wantProblem(t, resp, want)
					e.lineOf(t, resp).want(t, line{
						"op": "_unmatched", "status": 400.0, "rule": want.ID, "error": want.Message, "decision": "deny", "caller": nil, "method": tt.method,
					})
				})
			}
		}
		t.Cleanup(func() {
			if n := e.backend.count(""); n != 0 {
				t.Errorf("%d of them reached a backend", n)
			}
		})
	}
}

// Before it has chosen a route Envoy can answer such a request in no other
// way. It says no in gRPC's words, and nobody behind it hears of the request.
func TestARequestThatSaysItIsGRPCAndIsNoRequestReachesNobody(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	const headers = "Authorization: Bearer VALID\r\nContent-Type: application/grpc\r\nConnection: close\r\n\r\n"
	for name, request := range map[string]string{
		"a path with an encoded zero": "GET /v1/live%00 HTTP/1.1\r\nHost: edge\r\n" + headers,
		"a path with a fragment":      "GET /v1/live#top HTTP/1.1\r\nHost: edge\r\n" + headers,
		"no host":                     "GET /v1/live HTTP/1.1\r\n" + headers,
		"HTTP/1.0":                    "GET /v1/live HTTP/1.0\r\nHost: edge\r\n" + headers,
	} {
		t.Run(name, func(t *testing.T) {
			resp := e.send(t, request)
			if s := resp.Header.Get("Grpc-Status"); resp.StatusCode < 400 && (s == "" || s == "0") {
				t.Errorf("answered %d, grpc-status %q", resp.StatusCode, s)
			}
		})
	}
	e.fence(t)
	for _, l := range e.lines(t) {
		l.want(t, line{"decision": "deny", "caller": nil})
	}
	if n := e.wantPaired(t); n != 0 {
		t.Errorf("%d of them reached a backend", n)
	}
}
