package edge

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// begin makes a call and gives its answer once that has begun.
func (e *edge) begin(t *testing.T, path string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() }) // most are closed by then
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("status %d", resp.StatusCode)
	}
	return resp
}

// hardOfHearing gives e with a client whose kernel takes next to nothing for it.
func (e *edge) hardOfHearing(t *testing.T) *edge {
	t.Helper()
	other := *e
	transport := &http.Transport{DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := new(net.Dialer).DialContext(ctx, network, addr)
		if tcp, ok := c.(*net.TCPConn); ok {
			err = tcp.SetReadBuffer(4096)
		}
		return c, err
	}}
	t.Cleanup(transport.CloseIdleConnections)
	other.client = &http.Client{Transport: transport}
	return &other
}

// rule: R404
func TestAnAnswerThatBreaksOffIsNotWholeInItsLine(t *testing.T) {
	t.Parallel()
	// Long enough for an answer to begin on a loaded machine.
	e := start(t, setup{planned: true, policy: "version: 1\noperations:\n  listLiveRuns: {timeout: 3s}\n"})
	h2 := *e
	h2.overHTTP2(t)
	stays := func(*http.Response) {}
	leaves := func(resp *http.Response) { _ = resp.Body.Close() }
	reads := func(resp *http.Response) { _, _ = io.Copy(io.Discard, resp.Body) } // the line says how it ends
	for name, tt := range map[string]struct {
		by    *edge
		path  string
		after func(*http.Response)
		err   any
	}{
		"its reader stops until its time is up":            {e.hardOfHearing(t), "/v1/live?do=endless", stays, "response_timeout"},
		"its reader stops, over HTTP/2":                    {&h2, "/v1/live?do=endless", stays, "response_timeout"},
		"its backend trickles until its time is up":        {e, "/v1/live?do=trickle", reads, "response_timeout"},
		"its caller closes the connection":                 {e, "/v1/live?do=trickle", leaves, "downstream_remote_disconnect"},
		"its caller resets the call, over HTTP/2":          {&h2, "/v1/live?do=trickle", leaves, "http2.remote_reset"},
		"but a stream whose viewer leaves is whole":        {e, "/v1/events?do=trickle", leaves, nil},
		"and so is one whose viewer leaves it over HTTP/2": {&h2, "/v1/events?do=trickle", leaves, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := tt.by.begin(t, tt.path)
			tt.after(resp)
			e.lineOf(t, resp).want(t, line{"decision": "allow", "status": 200.0, "rule": nil, "error": tt.err})
		})
	}
}

func TestAnAnswerThatEndsWithTheEdgeIsNotWholeInItsLine(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	answer, stream := e.begin(t, "/v1/live?do=trickle"), e.begin(t, "/v1/events?do=trickle")
	e.envoy.Stop()
	for _, resp := range []*http.Response{answer, stream} {
		l := e.lineOf(t, resp)
		l.want(t, line{"status": 200.0})
		if s, _ := l["error"].(string); !strings.HasPrefix(s, "downstream_local_disconnect") {
			t.Errorf("error is %v", l["error"])
		}
	}
}
