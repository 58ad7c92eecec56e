package edge

import (
	"io"
	"net/http"
	"testing"

	"hangar.io/glidepath/internal/problem"
)

// overHTTP2 makes calls of e over HTTP/2 without TLS.
func (e *edge) overHTTP2(t *testing.T) {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetUnencryptedHTTP2(true)
	transport := &http.Transport{Protocols: protocols}
	t.Cleanup(transport.CloseIdleConnections)
	e.client = &http.Client{Transport: transport}
}

func TestHTTP2IsServedTheSame(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	e.overHTTP2(t)
	resp := e.get(t, "/v1/apps/shop/live", "X-Glidepath-Identity", "me", "X-Request-Id", "mine")
	if resp.ProtoMajor != 2 || resp.StatusCode != http.StatusOK {
		t.Errorf("%s %d", resp.Proto, resp.StatusCode)
	}
	e.lineOf(t, resp).want(t, line{"op": "listLive", "status": 200.0, "decision": "allow"})
	resp = e.get(t, "/v1/apps/a%20b/live")
	wantProblem(t, resp, problem.EdgeBadRequest)
	e.lineOf(t, resp)
	if resp := e.call(t, "BREW", "/v1/live", nil); resp.StatusCode != http.StatusMethodNotAllowed || resp.Header.Get("Allow") != http.MethodGet {
		t.Errorf("an unknown method gives %d, Allow %q", resp.StatusCode, resp.Header.Get("Allow"))
	}
}

// Over HTTP/2 Envoy ends a call that breaks the protocol without an answer, and
// the connection's other calls go on.
func TestAnHTTP2CallThatEnvoyEndsHasALine(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	e.overHTTP2(t)
	stream, err := e.client.Get(e.url + "/v1/events?do=stream")
	if err != nil {
		t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/v1/live", nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header["x_glidepath_identity"] = []string{"me"}
	if resp, err := e.client.Do(req); err == nil {
		_ = resp.Body.Close()
		t.Errorf("it was answered %d", resp.StatusCode)
	}
	e.lineWhere(t, "of the call", func(l line) bool { return l["error"] == "http2.unexpected_underscore" }).
		want(t, line{"status": 499.0, "decision": "deny", "op": "_unmatched"})
	first := make([]byte, 5)
	if _, err := io.ReadFull(stream.Body, first); err != nil {
		t.Errorf("the other call of the connection ended too: %v", err)
	}
	if err := stream.Body.Close(); err != nil {
		t.Error(err)
	}
	e.backend.wantLeft(t)
}
