package edge

import (
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/problem"
)

// Requests that Envoy refuses before it has chosen a route. Their lines have
// no trace to find them by, so the tests take turns.
//
// rule: R387, R403
func TestProtocolErrors(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	big := strings.Repeat("x", 40<<10)
	for name, tt := range map[string]struct {
		request string
		want    problem.Rule
	}{
		"headers larger than the edge takes": {
			"GET /v1/live HTTP/1.1\r\nHost: edge\r\nX-Big: " + big + "\r\n\r\n", problem.EdgeHeadersTooLarge,
		},
		"a path larger than the edge takes": {
			"GET /v1/apps/" + big + "/live HTTP/1.1\r\nHost: edge\r\n\r\n", problem.EdgeHeadersTooLarge,
		},
		"more headers than the edge takes": {
			"GET /v1/live HTTP/1.1\r\nHost: edge\r\n" + strings.Repeat("X-More: 1\r\n", 150) + "\r\n", problem.EdgeHeadersTooLarge,
		},
		"a header name with an underscore": {
			"GET /v1/live HTTP/1.1\r\nHost: edge\r\nX_Glidepath_Identity: me\r\n\r\n", problem.EdgeBadRequest,
		},
		"a length and chunks at once": {
			"GET /v1/live HTTP/1.1\r\nHost: edge\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", problem.EdgeBadRequest,
		},
		"two lengths": {
			"GET /v1/live HTTP/1.1\r\nHost: edge\r\nContent-Length: 4\r\nContent-Length: 5\r\n\r\nabcd", problem.EdgeBadRequest,
		},
		"no host": {"GET /v1/live HTTP/1.1\r\n\r\n", problem.EdgeBadRequest},
		"a header with a line break in its name": {
			"GET /v1/live HTTP/1.1\r\nHost: edge\r\nX-A\r: b\r\n\r\n", problem.EdgeBadRequest,
		},
		"not HTTP at all": {"hello\r\n\r\n", problem.EdgeBadRequest},
		"bytes that are no ASCII in the path": {
			"GET /v1/apps/\xc3\xa9/live HTTP/1.1\r\nHost: edge\r\n\r\n", problem.EdgeBadRequest,
		},
		"HTTP/1.0": {"GET /v1/live HTTP/1.0\r\n\r\n", problem.EdgeUpgradeRequired},
		"a tunnel": {"CONNECT backend:80 HTTP/1.1\r\nHost: backend:80\r\n\r\n", problem.EdgeBadRequest},
		"an upgrade of the connection": {
			"GET /v1/live HTTP/1.1\r\nHost: edge\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n", problem.EdgeBadRequest,
		},
		"the options of everything": {"OPTIONS * HTTP/1.1\r\nHost: edge\r\n\r\n", problem.EdgeNotFound},
		"headers that do not end":   {"GET /v1/live HTTP/1.1\r\nHost: edge\r\n", problem.EdgeTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(e.lines(t))
			wantProblem(t, e.send(t, tt.request), tt.want)
			e.fence(t)
			after := e.lines(t)
			if n := len(after) - before; n != 2 { // the refusal's and the fence's
				t.Fatalf("%d lines: %v", n, after[before:])
			}
			l := after[before]
			l.want(t, line{"msg": "audit", "status": float64(tt.want.Status), "rule": tt.want.ID, "decision": "deny", "caller": nil})
			if l["error"] == nil || l["op"] == nil || l["time"] == nil || l["ms"] == nil {
				t.Errorf("the line lacks a key: %v", l)
			}
		})
	}
	if n := e.backend.count(""); n != len(e.lines(t))/2 {
		t.Errorf("%d calls reached the backend, want the fences alone", n)
	}
}

func TestNoRequestHidesInAnother(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	hidden := "GET /v1/live?hidden HTTP/1.1\r\nHost: edge\r\n\r\n"
	for name, request := range map[string]string{
		"behind a length that chunks contradict": "GET /v1/live HTTP/1.1\r\nHost: edge\r\nContent-Length: 6\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + hidden,
		"behind an encoding that is no chunking": "GET /v1/live HTTP/1.1\r\nHost: edge\r\nTransfer-Encoding: xchunked\r\n\r\n" + hidden,
		"behind an encoding in odd letters":      "GET /v1/live HTTP/1.1\r\nHost: edge\r\nTransfer-Encoding : chunked\r\n\r\n0\r\n\r\n" + hidden,
		"behind a broken chunk":                  "GET /v1/live HTTP/1.1\r\nHost: edge\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n" + hidden,
	} {
		t.Run(name, func(t *testing.T) {
			resp := e.send(t, request)
			if resp.StatusCode < 400 {
				t.Errorf("status %d", resp.StatusCode)
			}
			e.fence(t)
			if n := e.backend.count("hidden"); n != 0 {
				t.Errorf("the hidden request reached the backend %d times", n)
			}
		})
	}
	t.Run("a body that looks like a request stays a body", func(t *testing.T) {
		e.call(t, http.MethodGet, "/v1/live", strings.NewReader(hidden))
		e.fence(t)
		if n := e.backend.count("hidden"); n != 0 {
			t.Errorf("the hidden request reached the backend %d times", n)
		}
	})
}

func TestBodiesLargerThanTheOperationTakes(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	const rerun, validate = "/v1/apps/shop/pipelineruns/x/rerun", "/v1/apps/shop/cicd/validations"
	for name, tt := range map[string]struct {
		method, path string
		size         int
		want         int
	}{
		"a write's small body":          {http.MethodPost, rerun, 1 << 10, 200},
		"a write's large body":          {http.MethodPost, rerun, 256 << 10, 413},
		"a document as large as it may": {http.MethodPost, validate, 900 << 10, 200},
		"a document larger than that":   {http.MethodPost, validate, 3 << 20, 413},
		"a read with a large body":      {http.MethodGet, "/v1/live", 256 << 10, 413},
		"nothing with a large body":     {http.MethodPost, "/v1/nothing", 256 << 10, 413},
	} {
		for kind, chunked := range map[string]bool{"with a length": false, "in chunks": true} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				body := strings.NewReader(strings.Repeat("x", tt.size))
				req, err := http.NewRequestWithContext(t.Context(), tt.method, e.url+tt.path, body)
				if err != nil {
					t.Fatal(err)
				}
				if chunked {
					req.ContentLength = -1
				}
				resp, err := newClient(t).Do(req)
				if err != nil {
					t.Fatal(err)
				}
				defer func() { _ = resp.Body.Close() }()
				if tt.want == 413 {
					wantProblem(t, resp, problem.EdgeTooLarge)
				} else if resp.StatusCode != tt.want {
					t.Errorf("status %d, want %d", resp.StatusCode, tt.want)
				}
			})
		}
	}
}

func TestAConnectionThatSaysNothingIsNotACall(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	c, err := net.DialTimeout("tcp", e.addr, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	e.fence(t)
	if got := e.lines(t); len(got) != 1 {
		t.Errorf("%d lines, want the fence's alone: %v", len(got), got)
	}
}
