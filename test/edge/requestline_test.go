package edge

import (
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// Whatever a request line and its Host say: an answer comes from the operation
// that was decided, or is a refusal.
func TestOddRequestLinesAndHosts(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	const host, good = "Host: edge\r\n", "Authorization: Bearer VALID\r\n"
	ok, bad, nothing := 200, 400, 404
	var answers atomic.Int32
	cases := map[string]struct {
		line, headers string
		want          int
	}{
		"a plain one":                              {"GET /v1/live HTTP/1.1", host, ok},
		"a whole URL":                              {"GET http://edge/v1/live HTTP/1.1", host, ok},
		"a whole URL of another host":              {"GET http://elsewhere/v1/live HTTP/1.1", host, ok},
		"a whole URL with dots":                    {"GET http://edge/v1/apps/../live HTTP/1.1", host, ok},
		"a whole URL of a user":                    {"GET http://a:b@edge/v1/live HTTP/1.1", host, ok},
		"a whole URL of another scheme":            {"GET ftp://edge/v1/live HTTP/1.1", host, bad},
		"a whole URL without a path":               {"GET http://edge HTTP/1.1", host, nothing},
		"a whole URL without a host":               {"GET http:///v1/live HTTP/1.1", host, bad},
		"a whole URL whose query is a path":        {"GET http://edge?/v1/live HTTP/1.1", host, nothing},
		"a whole URL of TLS":                       {"GET https://edge/v1/live HTTP/1.1", host, bad},
		"two slashes and a host":                   {"GET //edge/v1/live HTTP/1.1", host, nothing},
		"a host and a port":                        {"GET edge:80 HTTP/1.1", host, bad},
		"a path without a slash":                   {"GET v1/live HTTP/1.1", host, bad},
		"a star":                                   {"GET * HTTP/1.1", host, bad},
		"a star that asks for the options":         {"OPTIONS * HTTP/1.1", host, nothing},
		"a tunnel to a host":                       {"CONNECT livehub:80 HTTP/1.1", "Host: livehub:80\r\n", bad},
		"a tunnel to a path":                       {"CONNECT /v1/live HTTP/1.1", host, bad},
		"a tunnel to nothing":                      {"CONNECT HTTP/1.1", host, bad},
		"no target":                                {"GET  HTTP/1.1", host, bad},
		"a target with a space":                    {"GET /v1/live HTTP/1.1/../taskruns HTTP/1.1", host, bad},
		"a target with a tab":                      {"GET /v1/live\t HTTP/1.1", host, ok},
		"a target with a vertical tab":             {"GET /v1/live\vHTTP/1.1", host, bad},
		"a target with a NUL":                      {"GET /v1/live\x00 HTTP/1.1", host, bad},
		"a target with a letter beyond ASCII":      {"GET /v1/live?\xc3\xa9 HTTP/1.1", host, bad},
		"a fragment":                               {"GET /v1/live#/v1/nothing HTTP/1.1", host, bad},
		"a query that is a request":                {"GET /v1/live?GET%20/v1/apps/shop/runs%20HTTP/1.1%0d%0a HTTP/1.1", host, ok},
		"a method in small letters":                {"get /v1/live HTTP/1.1", host, bad},
		"a method that HTTP does not know":         {"LIST /v1/live HTTP/1.1", host, bad},
		"no method":                                {" /v1/live HTTP/1.1", host, bad},
		"a method before a tab":                    {"GET\t/v1/live HTTP/1.1", host, ok},
		"a method of WebDAV":                       {"PROPFIND /v1/live HTTP/1.1", host, 405},
		"HTTP/0.9":                                 {"GET /v1/live", "", 426},
		"HTTP/1.0":                                 {"GET /v1/live HTTP/1.0", host, 426},
		"HTTP/1.0 that stays":                      {"GET /v1/live HTTP/1.0", host + "Connection: keep-alive\r\n", 426},
		"HTTP/1.2":                                 {"GET /v1/live HTTP/1.2", host, 426},
		"HTTP/2 by name":                           {"GET /v1/live HTTP/2.0", host, 426},
		"HTTP/11":                                  {"GET /v1/live HTTP/11", host, bad},
		"http in small letters":                    {"GET /v1/live http/1.1", host, bad},
		"no name of a protocol":                    {"GET /v1/live XTTP/1.1", host, bad},
		"no host":                                  {"GET /v1/live HTTP/1.1", "", bad},
		"an empty host":                            {"GET /v1/live HTTP/1.1", "Host:\r\n", ok},
		"two hosts":                                {"GET /v1/live HTTP/1.1", host + "Host: elsewhere\r\n", bad},
		"the same host twice":                      {"GET /v1/live HTTP/1.1", host + host, bad},
		"a host with a path":                       {"GET /v1/live HTTP/1.1", "Host: edge/v1/apps/shop\r\n", bad},
		"a host with a user":                       {"GET /v1/live HTTP/1.1", "Host: me@edge\r\n", bad},
		"a host with a space":                      {"GET /v1/live HTTP/1.1", "Host: edge elsewhere\r\n", bad},
		"a host with a port":                       {"GET /v1/live HTTP/1.1", "Host: edge:65535\r\n", ok},
		"a host with a port that is none":          {"GET /v1/live HTTP/1.1", "Host: edge:65536\r\n", bad},
		"a host with a port of many digits":        {"GET /v1/live HTTP/1.1", "Host: edge:0000000080\r\n", bad},
		"a host with two ports":                    {"GET /v1/live HTTP/1.1", "Host: edge:80:81\r\n", bad},
		"a host with a port that is a word":        {"GET /v1/live HTTP/1.1", "Host: edge:http\r\n", bad},
		"a host of colons":                         {"GET /v1/live HTTP/1.1", "Host: ::::\r\n", bad},
		"a host of brackets":                       {"GET /v1/live HTTP/1.1", "Host: [[[\r\n", bad},
		"a host with brackets inside":              {"GET /v1/live HTTP/1.1", "Host: a[::1]\r\n", bad},
		"a host that is an address":                {"GET /v1/live HTTP/1.1", "Host: 127.0.0.1:8080\r\n", ok},
		"a host that is an address of IPv6":        {"GET /v1/live HTTP/1.1", "Host: [::ffff:127.0.0.1]:8080\r\n", ok},
		"a host that is IPv6 without brackets":     {"GET /v1/live HTTP/1.1", "Host: ::1\r\n", bad},
		"a host that is the backend":               {"GET /v1/live HTTP/1.1", "Host: livehub\r\n", ok},
		"a host that is localhost":                 {"GET /v1/live HTTP/1.1", "Host: localhost\r\n", ok},
		"an upgrade to HTTP/2":                     {"GET /v1/live HTTP/1.1", host + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\n", ok},
		"an upgrade to TLS":                        {"GET /v1/live HTTP/1.1", host + "Connection: Upgrade\r\nUpgrade: TLS/1.2\r\n", bad},
		"an upgrade to a WebSocket":                {"GET /v1/live HTTP/1.1", host + "Connection: Upgrade\r\nUpgrade: websocket\r\n", bad},
		"an upgrade to a tunnel":                   {"POST /v1/live HTTP/1.1", host + "Connection: Upgrade\r\nUpgrade: connect-udp\r\n", nothing},
		"an upgrade that no connection names":      {"GET /v1/live HTTP/1.1", host + "Upgrade: websocket\r\n", ok},
		"an expectation that nobody knows":         {"GET /v1/live HTTP/1.1", host + "Expect: everything\r\n", ok},
		"lines before the request line":            {"\r\n\r\nGET /v1/live HTTP/1.1", host, ok},
		"the preface of HTTP/2 without a protocol": {"PRI * HTTP/1.1", host, bad},
		"a greeting of TLS":                        {"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", "", bad},
		"a line of the PROXY protocol":             {"PROXY TCP4 127.0.0.1 127.0.0.1 1 2\r\nGET /v1/live HTTP/1.1", host, bad},
		"no HTTP at all":                           {"EHLO edge", "", bad},
	}
	t.Run("is the decided operation, or refused:", func(t *testing.T) {
		for name, tt := range cases {
			for credentials, header := range map[string]string{"with a token": good, "with none": ""} {
				t.Run(name+" "+credentials, func(t *testing.T) {
					t.Parallel()
					want := tt.want
					if want == ok && header == "" {
						want = 401
					}
					got := e.exchange(t, tt.line+"\r\n"+tt.headers+header+"Connection: close\r\n\r\n", 1)
					for _, a := range got {
						wantSound(t, a)
					}
					if !slices.Equal(statusesOf(got), []int{want}) {
						t.Errorf("answered %v, want %d", statusesOf(got), want)
					}
					answers.Add(int32(len(got)))
				})
			}
		}
	})
	served := 0
	for _, tt := range cases {
		if tt.want == ok {
			served++
		}
	}
	if n := e.wantAllPaired(t, int(answers.Load())); n != served {
		t.Errorf("%d requests reached a backend, want the %d with a token", n, served)
	}
}

// Bytes that stop in the middle of a request lead to nothing, however far they
// came.
func TestARequestThatIsNotFinishedReachesNobody(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	whole := "POST /v1/apps/shop/cicd/validations HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer VALID\r\n"
	requests := map[string]string{
		"in the method":                   "PO",
		"in the target":                   "POST /v1/apps",
		"in the headers":                  whole,
		"in the body":                     whole + "Content-Length: 10\r\n\r\nabc",
		"before the body":                 whole + "Content-Length: 10\r\n\r\n",
		"before the first chunk":          whole + "Transfer-Encoding: chunked\r\n\r\n",
		"in a chunk's size":               whole + "Transfer-Encoding: chunked\r\n\r\n1",
		"in a chunk":                      whole + "Transfer-Encoding: chunked\r\n\r\n5\r\nabc",
		"before the last chunk":           whole + "Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n",
		"in the trailers":                 whole + "Transfer-Encoding: chunked\r\n\r\n0\r\nX-A: b\r\n",
		"in the preface of HTTP/2":        "PRI * HTTP/2.0\r\n\r\nSM",
		"after the preface of HTTP/2":     "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"in a frame that is not HTTP/2's": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 64),
	}
	t.Run("is no request:", func(t *testing.T) {
		for name, request := range requests {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				for _, code := range e.halfClosed(t, request) {
					if code < 400 {
						t.Errorf("it was answered %d", code)
					}
				}
			})
		}
	})
	e.fence(t)
	if n := e.wantPaired(t); n != 0 {
		t.Errorf("%d requests reached a backend", n)
	}
}
