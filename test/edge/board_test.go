package edge

import (
	"net/http"
	"strings"
	"testing"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"

	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/xds"
	"hangar.io/glidepath/xds/board"
)

// The board is the one thing that a caller gets whom nobody knows: the same
// bytes for all, whatever they send, and authz is not asked.
func TestTheBoardIsServedToEveryoneAndNothingElseIs(t *testing.T) {
	t.Parallel()
	e := start(t, setup{options: func(o *xds.Options) { o.Board = true }})
	for _, path := range []string{"/board", "/board?app=shop&token=x", "//board", "/x/../board"} {
		resp := e.send(t, "GET "+path+" HTTP/1.1\r\nHost: edge\r\nConnection: close\r\n\r\n")
		if body := readAll(t, resp); resp.StatusCode != http.StatusOK || string(body) != string(board.HTML()) {
			t.Fatalf("%s: %d, %d bytes", path, resp.StatusCode, len(body))
		}
		for name, want := range map[string]string{
			"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": board.Policy(), "Cache-Control": "no-store",
			"X-Content-Type-Options": "nosniff", "X-Frame-Options": "DENY", "Referrer-Policy": "no-referrer", "Set-Cookie": "",
		} {
			if got := strings.Join(resp.Header.Values(name), ", "); got != want {
				t.Errorf("%s: %q, want %q", name, got, want)
			}
		}
		e.lineOf(t, resp).want(t, line{"op": "_board", "status": 200.0, "decision": "public", "caller": nil, "tier": nil, "app": nil, "method": "GET"})
	}
	if r := e.authz.last(func(*authv3.CheckRequest) bool { return true }); r != nil {
		t.Errorf("authz was asked: %v", r)
	}
	for _, method := range []string{http.MethodPost, http.MethodHead, http.MethodDelete} {
		if resp := e.call(t, method, "/board", nil); resp.StatusCode == http.StatusOK {
			t.Errorf("%s is served", method)
		}
	}
	for _, path := range []string{"/board/", "/board/x", "/Board", "/boar", "/", "/v1/board", "/board.html"} {
		if resp := e.get(t, path); resp.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
}

func TestThereIsNoBoardWhereItIsSwitchedOff(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	if resp := e.get(t, "/board"); resp.StatusCode != problem.EdgeNotFound.Status {
		t.Errorf("it is served: %d", resp.StatusCode)
	}
}
