package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"hangar.io/glidepath/internal/audit"
	"hangar.io/glidepath/internal/identity"
)

// dial connects to the edge for bytes that no HTTP client would send.
func dial(t *testing.T) net.Conn {
	t.Helper()
	d := net.Dialer{Timeout: 5 * time.Second}
	c, err := d.DialContext(t.Context(), "tcp", strings.TrimPrefix(gw.URL, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // the edge may have closed it already
	if err := c.SetDeadline(time.Now().Add(callTimeout)); err != nil {
		t.Fatal(err)
	}
	return c
}

// statuses reads answers until the edge closes the connection.
func statuses(c io.Reader) ([]int, error) {
	var got []int
	for r := bufio.NewReader(c); ; {
		res, err := http.ReadResponse(r, nil)
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return got, fmt.Errorf("the edge neither answers nor closes: %w", err)
		}
		if err != nil {
			return got, nil //nolint:nilerr // whichever way it is closed
		}
		_, err = io.Copy(io.Discard, res.Body)
		if cerr := res.Body.Close(); err != nil || cerr != nil {
			return got, nil //nolint:nilerr // the same
		}
		got = append(got, res.StatusCode)
	}
}

// hidden is a request that an attacker wants somebody to see in the body of
// another; its caller has no token. NN is the number of the attempt.
const hidden = "GET /v1/apps/shop/releases?try=NN HTTP/1.1\r\nHost: hidden\r\nConnection: close\r\n\r\n"

// Each of these streams means one request to one reader and two to another. A
// reader that the edge disagrees with would answer hidden, which nobody decided.
// All are sent at once: the edge keeps a connection that it refused something on
// for a second.
func TestAttackNoRequestHidesInTheBodyOfAnother(t *testing.T) {
	chunked := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)
	const next = "GET /v1/whoami HTTP/1.1\r\nHost: g\r\nConnection: close\r\n\r\n" // ends the connection
	length := fmt.Sprintf("Content-Length: %d\r\n", len(hidden))
	tries := map[string]struct {
		headers, body string
		want          []int // nil: any refusal
	}{
		"a length alone":                       {length, hidden + next, []int{200, 401}},
		"chunks alone":                         {"Transfer-Encoding: chunked\r\n", chunked + next, []int{200, 401}},
		"chunks in upper case":                 {"Transfer-Encoding: CHUNKED\r\n", chunked + next, []int{200, 401}},
		"chunks on a folded line":              {"Transfer-Encoding:\r\n chunked\r\n", chunked + next, []int{200, 401}},
		"a length that Connection names":       {length + "Connection: Content-Length\r\n", hidden + next, []int{200, 401}},
		"chunks that Connection names":         {"Transfer-Encoding: chunked\r\nConnection: Transfer-Encoding\r\n", chunked + next, []int{200, 401}},
		"no length: it is the next request":    {"", hidden, []int{200, 401}},
		"a length, then chunks":                {"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n", chunked, nil},
		"chunks, then a length":                {"Transfer-Encoding: chunked\r\n" + length, "0\r\n\r\n" + hidden, nil},
		"chunks with a space before the colon": {"Content-Length: 4\r\nTransfer-Encoding : chunked\r\n", chunked, nil},
		"two encodings":                        {"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", chunked, nil},
		"an encoding that is almost chunked":   {"Transfer-Encoding: xchunked\r\n", chunked, nil},
		"identity after chunked":               {"Transfer-Encoding: chunked, identity\r\n", chunked, nil},
		"a vertical tab before chunked":        {"Transfer-Encoding: \vchunked\r\n", chunked, nil},
		"two lengths":                          {"Content-Length: 0\r\n" + length, hidden, nil},
		"a list of lengths":                    {"Content-Length: 0, 0\r\n", hidden, nil},
		"a length with a sign":                 {"Content-Length: +0\r\n", hidden, nil},
		"a length in base 16":                  {"Content-Length: 0x0\r\n", hidden, nil},
		"a length beyond 64 bits":              {"Content-Length: 18446744073709551616\r\n", hidden, nil},
		"a chunk's size beyond 64 bits":        {"Transfer-Encoding: chunked\r\n", "10000000000000000\r\n" + hidden, nil},
		"a chunk's size with 0x":               {"Transfer-Encoding: chunked\r\n", "0x0\r\n\r\n" + hidden, nil},
		"a line feed in a chunk's extension":   {"Transfer-Encoding: chunked\r\n", "0;a\nb\r\n\r\n" + hidden, nil},
		"a chunk longer than its size":         {"Transfer-Encoding: chunked\r\n", "1\r\naXX0\r\n\r\n" + hidden, nil},
		"an upgrade":                           {"Connection: Upgrade\r\nUpgrade: websocket\r\n", hidden, nil},
		"a carriage return alone":              {"X-A: b\rContent-Length: 5\r\n", hidden, []int{200, 401}},
		"a NUL":                                {"X-A: b\x00c\r\n", hidden, nil},
	}
	planned.Reset()
	type replies struct {
		statuses []int
		err      error
	}
	answers, through := map[string]chan replies{}, map[string]string{}
	for name, tc := range tries {
		number := fmt.Sprintf("%02d", len(answers))
		uri := "/v1/apps/gate-api/releases?try=" + number
		text := "GET " + uri + " HTTP/1.1\r\nHost: g\r\nAuthorization: Bearer " + tokens["reader"] + "\r\n" +
			strings.ReplaceAll(tc.headers+"\r\n"+tc.body, "=NN ", "="+number+" ")
		c, came := dial(t), make(chan replies, 1)
		if _, err := io.WriteString(c, text); err != nil {
			t.Fatal(err)
		}
		go func() {
			got, err := statuses(c)
			came <- replies{got, err}
		}()
		answers[name] = came
		if tc.want != nil {
			through[uri] = name
		}
	}
	for name, tc := range tries {
		t.Run(name, func(t *testing.T) {
			r := <-answers[name]
			if r.err != nil {
				t.Fatal(r.err)
			}
			got := r.statuses
			if tc.want == nil && (len(got) != 1 || got[0] < 400) || tc.want != nil && fmt.Sprint(got) != fmt.Sprint(tc.want) {
				t.Errorf("answered %v, want %v", got, tc.want)
			}
		})
	}
	for _, r := range planned.Requests() {
		if through[r.URI] == "" {
			t.Errorf("%s %s reached a backend", r.Method, r.URI)
		}
		delete(through, r.URI)
	}
	for uri, name := range through {
		t.Errorf("%s: %s did not reach the backend", name, uri)
	}
}

// decided gives the claims of the identity that a request came with, which its
// backend would verify.
func decided(t *testing.T, h http.Header) identity.Claims {
	t.Helper()
	var c identity.Claims
	ids := h.Values(identity.Header)
	if len(ids) != 1 || strings.Count(ids[0], ".") != 2 {
		t.Fatalf("%d identities", len(ids))
	}
	raw, err := base64.RawURLEncoding.DecodeString(strings.Split(ids[0], ".")[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &c); err != nil {
		t.Fatal(err)
	}
	return c
}

// However a target is written: if it reaches a backend, then the backend reads
// from it the operation and the app that were decided and written down.
//
// rule: R405
func TestAttackABackendGetsNoOtherTargetThanWasDecided(t *testing.T) {
	reached := 0
	for _, target := range []string{
		"/v1/apps/gate-api/releases", "/v1/apps/shop/../gate-api/releases", "/v1/apps/shop/..;/gate-api/releases", `/v1/apps/shop\..\gate-api/releases`,
		"/v1/apps/shop%2f..%2fgate-api/releases", "/v1/apps/shop/%2e%2e/gate-api/releases", "/v1/apps/shop/.%2e/gate-api/releases", "/v1/apps/shop%252f..%252fgate-api/releases",
		"//v1/apps/gate-api/releases", "/v1/apps//gate-api/releases", "/./v1/apps/gate-api/./releases", "/../v1/apps/gate-api/releases", "/v1/apps/%67ate-api/releases",
		"/v1/apps/gate-api;/releases", "/v1/apps/gate-api;a=b/releases", "/v1/apps/gate-api/releases;a", "/v1/apps/gate-api/releases/", "/v1/apps/gate-api/releases/..",
		"/v1/apps/gate-api%00/releases", "/v1/apps/gate-api%0a/releases", "/v1/apps/gate-api%c0%af/releases", "/v1/apps/gate-api\xff/releases", "/v1/apps/../releases", "/v1/apps/./releases",
		"/v1/apps/gate-api/releases#", "/v1/apps/gate-api/releases#/../../shop/releases", "http://elsewhere/v1/apps/gate-api/releases", "http://elsewhere/v1/apps/shop/../gate-api/releases",
		"/v1/apps/gate-api/releases?app=shop", "/v1/apps/gate-api/releases?/../../shop/releases", "/v1/apps/gate-api/releases?app=shop&app=other", "/V1/apps/gate-api/releases",
		"/v1/releases", "/v1/releases?app=shop", "/v1/releases?a%70p=shop", "/v1/releases?app=sh%6fp", "/v1/releases?APP=shop", "/v1/releases?app[]=shop", "/v1/releases?app%5b%5d=shop", "/v1/releases?app%00=shop",
		"/v1/releases?+app=shop", "/v1/releases?&app=shop&", "/v1/releases??app=shop", "/v1/releases?app=shop&app=gate-api", "/v1/releases?app=shop&%61pp=gate-api", "/v1/releases?app=shop;app=gate-api",
		"/v1/releases?x=1;app=shop", "/v1/releases?app=shop%26app=gate-api", "/v1/releases?app=shop%00", "/v1/releases?app=+shop", "/v1/releases?app=", "/v1/releases?app", "/v1/releases?app=shop#", "/v1/releases#?app=shop",
		"/v1/releases%3fapp=shop", "/v1/releases?x=%zz&app=shop", "/v1/releases?app=shop/../gate-api", "/v1/releases?x=\xff&app=shop", "/v1/releases?app=shop&x=" + strings.Repeat("y", 20<<10),
	} {
		t.Run(target[:min(len(target), 60)], func(t *testing.T) {
			planned.Reset()
			a := rawGet(t, target)
			seen := planned.Requests()
			if len(seen) == 0 {
				if a.status < 400 || a.status >= 500 || !strings.HasPrefix(a.problem(t).Rule, "GP-") {
					t.Fatalf("refused with %d %.100s", a.status, a.body)
				}
				return
			}
			reached++
			agreed(t, a, seen[0].URI, decided(t, seen[0].Header))
		})
	}
	if reached < 15 {
		t.Errorf("only %d targets reached a backend", reached)
	}
}

// agreed holds what a backend reads from a target against what authz decided
// and the edge wrote down.
func agreed(t *testing.T, a answer, uri string, c identity.Claims) {
	t.Helper()
	u, err := url.ParseRequestURI(uri)
	if err != nil {
		t.Fatal(err)
	}
	op, app := "listFleetReleases", u.Query().Get("app")
	if segments := strings.Split(u.EscapedPath(), "/"); len(segments) == 5 {
		op, app = "listReleases", segments[3]
	} else if u.EscapedPath() != "/v1/releases" {
		t.Fatalf("a backend got %s", uri)
	}
	if c.Op != op || c.App != app {
		t.Errorf("%s was decided as %s of %q", uri, c.Op, c.App)
	}
	want := line{"op": op, "app": app, "decision": "allow", "status": 200.0, "caller": c.Subject}
	if app == "" {
		want["app"] = nil
	}
	expectLine(t, auditOf(t, a), want)
}

// rule: R388, R389
func TestAttackATokenIsOneTokenOfOneHeader(t *testing.T) {
	good, bad := "Bearer "+tokens["reader"], "Bearer "+tokens["stranger"]
	const direct, proxy = "Authorization: ", "X-Glidepath-Authorization: "
	for name, tc := range map[string]struct {
		headers []string
		status  int
		rule    string
	}{
		"two tokens":                             {[]string{direct + bad, direct + good}, 401, "GP-AUTH-002"},
		"one token twice":                        {[]string{direct + good, direct + good}, 401, "GP-AUTH-002"},
		"two tokens in one header":               {[]string{direct + good + ", " + bad}, 401, "GP-AUTH-002"},
		"two tokens at the proxy's":              {[]string{proxy + bad, proxy + good}, 401, "GP-AUTH-002"},
		"an empty one at the proxy's":            {[]string{proxy, direct + good}, 401, "GP-AUTH-001"},
		"another scheme at the proxy's":          {[]string{proxy + "Basic YTpi", direct + good}, 401, "GP-AUTH-001"},
		"a bad one at the proxy's":               {[]string{proxy + "Bearer nonsense", direct + good}, 401, "GP-AUTH-002"},
		"a tab after the scheme":                 {[]string{direct + "Bearer\t" + tokens["reader"]}, 401, "GP-AUTH-001"},
		"the scheme twice":                       {[]string{direct + "Bearer " + good}, 401, "GP-AUTH-002"},
		"a token that is too long":               {[]string{direct + "Bearer " + strings.Repeat("A", 20<<10)}, 401, "GP-AUTH-002"},
		"one that Connection has dropped":        {[]string{direct + good, "Connection: Authorization"}, 401, "GP-AUTH-001"},
		"one in a trailer":                       {[]string{"Trailer: Authorization"}, 401, "GP-AUTH-001"},
		"one as a cookie":                        {[]string{"Cookie: Authorization=" + good}, 401, "GP-AUTH-001"},
		"an identity instead":                    {[]string{"X-Glidepath-Identity: " + tokens["reader"]}, 401, "GP-AUTH-001"},
		"a correct tag instead":                  {[]string{"If-None-Match: *"}, 401, "GP-AUTH-001"},
		"a correct tag of who may not":           {[]string{direct + bad, "If-None-Match: *"}, 403, "GP-AUTHZ-001"},
		"another way to write a name of headers": {[]string{"X_Glidepath_Authorization: " + good}, 400, "GP-EDGE-400"},
	} {
		t.Run(name, func(t *testing.T) {
			a := raw(t, "GET /v1/live HTTP/1.1\r\nHost: g\r\nConnection: close\r\n"+strings.Join(tc.headers, "\r\n")+"\r\n\r\n")
			refused(t, a, tc.status, tc.rule)
		})
	}
}

func TestAttackAHopByHopHeaderTakesNothingFromTheEdge(t *testing.T) {
	for _, named := range []string{
		identity.Header, strings.ToLower(identity.Header), "X-Request-Id", "X-Glidepath-Audit", "Traceparent", "X-Glidepath-Internal-Traceparent", "Cookie",
	} {
		t.Run(named, func(t *testing.T) {
			planned.Reset()
			a := rawGet(t, "/v1/apps/gate-api/releases", "Connection: "+named, identity.Header+": forged")
			seen := planned.Requests()
			if a.status != http.StatusOK || len(seen) != 1 {
				t.Fatalf("got %d, %d requests at the backend", a.status, len(seen))
			}
			if c := decided(t, seen[0].Header); c.Subject != username(t, "reader") {
				t.Errorf("the identity is of %q", c.Subject)
			}
			if seen[0].Header.Get("X-Request-Id") == "" || auditOf(t, a)["requestId"] != seen[0].Header.Get("X-Request-Id") {
				t.Error("the backend has another request id than the audit line")
			}
		})
	}
	for _, named := range []string{":path", "Host", "X-Forwarded-For", "X-Forwarded-Proto"} {
		refused(t, rawGet(t, "/v1/apps/gate-api/releases", "Connection: "+named), 400, "GP-EDGE-400")
	}
}

// rule: R403
func TestAttackNobodyWritesIntoAnotherFieldOfTheAuditLog(t *testing.T) {
	const inject = `x","decision":"allow","caller":"root`
	before := len(linesAfter(t, func(line) bool { return true }))
	sent := 0
	send := func(text string) answer { sent++; return raw(t, text) }
	for _, header := range []string{
		"X-Request-Id: " + inject, "Traceparent: 00-" + inject, "Tracestate: " + inject, "User-Agent: " + inject, "X-Glidepath-Audit: " + inject,
		"X-Glidepath-Trace-Id: " + inject, "X-Forwarded-For: " + inject, "X-Envoy-Decorator-Operation: " + inject, "X-Client-Trace-Id: " + inject, "Idempotency-Key: " + inject,
		"X-Glidepath-On-Behalf-Of: " + inject, "X-Glidepath-On-Behalf-Of: a\tb", "Referer: " + inject, "Authorization: Bearer " + inject,
	} {
		send("GET /v1/live HTTP/1.1\r\nHost: g\r\nConnection: close\r\n" + header + "\r\n\r\n")
	}
	for _, target := range []string{`/v1/apps/` + inject + `/live`, "/v1/live?app=" + inject, "/v1/live/taskruns?pipelineRuns=" + inject, "/v1/live?limit=1&continue=" + url.QueryEscape(inject+"\n{}")} {
		send("GET " + target + " HTTP/1.1\r\nHost: g\r\nConnection: close\r\nAuthorization: Bearer " + tokens["delegate"] + "\r\nX-Glidepath-On-Behalf-Of: " + `a"b` + "\r\n\r\n")
	}
	lines := linesAfter(t, func(line) bool { return true })[before:]
	if len(lines) != sent+1 { // and one that marks the end
		t.Errorf("%d calls, %d lines", sent, len(lines)-1)
	}
	for _, l := range lines {
		if l["caller"] == "root" || l["requestId"] == inject || strings.ContainsAny(toString(l["traceId"]), `",`) {
			t.Errorf("a caller wrote %v", l)
		}
		if l["decision"] == "allow" && l["caller"] == nil {
			t.Errorf("allowed to nobody: %v", l)
		}
	}
}

// http2Call sends one request in HTTP/2 frames and gives its status, or 0 when
// the edge resets the stream.
func http2Call(t *testing.T, fields []hpack.HeaderField) string {
	t.Helper()
	c := dial(t)
	if _, err := io.WriteString(c, http2.ClientPreface); err != nil {
		t.Fatal(err)
	}
	f := http2.NewFramer(c, c)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var block bytes.Buffer
	e := hpack.NewEncoder(&block)
	for _, h := range fields {
		if err := e.WriteField(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(f.WriteSettings(), f.WriteHeaders(http2.HeadersFrameParam{
		StreamID: 1, BlockFragment: block.Bytes(), EndStream: true, EndHeaders: true,
	})); err != nil {
		t.Fatal(err)
	}
	for {
		frame, err := f.ReadFrame()
		if err != nil {
			t.Fatal(err)
		}
		switch frame := frame.(type) {
		case *http2.MetaHeadersFrame:
			return frame.PseudoValue("status")
		case *http2.RSTStreamFrame:
			return "reset"
		}
	}
}

func TestAttackAMalformedHTTP2RequestReachesNobody(t *testing.T) {
	sound := [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", "g"}, {":path", "/v1/apps/gate-api/releases"}, {"authorization", "Bearer " + tokens["reader"]}}
	for name, tc := range map[string]struct {
		without string
		before  [][2]string
		after   [][2]string
		status  string
	}{
		"a sound one":                  {status: "200"},
		"no method":                    {without: ":method", status: "reset"},
		"no path":                      {without: ":path", status: "reset"},
		"no scheme":                    {without: ":scheme", status: "reset"},
		"two paths":                    {before: [][2]string{{":path", "/v1/apps/shop/releases"}}, status: "reset"},
		"two methods":                  {before: [][2]string{{":method", "POST"}}, status: "reset"},
		"a path after the headers":     {without: ":path", after: [][2]string{{":path", "/v1/apps/shop/releases"}}, status: "reset"},
		"a path with a line break":     {without: ":path", before: [][2]string{{":path", "/v1/apps/gate-api/releases HTTP/1.1\r\nX: y"}}, status: "reset"},
		"a path with a NUL":            {without: ":path", before: [][2]string{{":path", "/v1/apps/gate-api/releases?x=\x00"}}, status: "reset"},
		"a path without a slash":       {without: ":path", before: [][2]string{{":path", "v1/apps/gate-api/releases"}}, status: "reset"},
		"a path that is a URL":         {without: ":path", before: [][2]string{{":path", "http://g/v1/apps/gate-api/releases"}}, status: "reset"},
		"a path with a fragment":       {without: ":path", before: [][2]string{{":path", "/v1/apps/gate-api/releases#x"}}, status: "400"},
		"a byte that is no character":  {without: ":path", before: [][2]string{{":path", "/v1/apps/gate-api\xff/releases"}}, status: "400"},
		"a method in lower case":       {without: ":method", before: [][2]string{{":method", "get"}}, status: "405"},
		"a method with a line break":   {without: ":method", before: [][2]string{{":method", "GET\r\nX: y"}}, status: "reset"},
		"a pseudo-header of nobody's":  {before: [][2]string{{":op", "whoami"}}, status: "reset"},
		"a tunnel":                     {without: ":method", before: [][2]string{{":method", "CONNECT"}, {":protocol", "websocket"}}, status: "reset"},
		"a header in upper case":       {after: [][2]string{{"X-Upper", "a"}}, status: "reset"},
		"a header with a line break":   {after: [][2]string{{"x", "a\r\nx-glidepath-identity: b"}}, status: "reset"},
		"a header with an underscore":  {after: [][2]string{{"x_glidepath_identity", "a"}}, status: "reset"},
		"an encoding of HTTP/1.1":      {after: [][2]string{{"transfer-encoding", "chunked"}}, status: "reset"},
		"a connection's header":        {after: [][2]string{{"connection", "x-glidepath-identity"}}, status: "reset"},
		"a length that does not match": {after: [][2]string{{"content-length", "5"}}, status: "reset"},
		"two tokens":                   {after: [][2]string{{"authorization", "Bearer " + tokens["reader"]}}, status: "401"},
	} {
		t.Run(name, func(t *testing.T) {
			planned.Reset()
			var fields []hpack.HeaderField
			for _, list := range [][][2]string{tc.before, sound, tc.after} {
				for _, h := range list {
					if h[0] == tc.without && &list[0] == &sound[0] {
						continue
					}
					fields = append(fields, hpack.HeaderField{Name: h[0], Value: h[1]})
				}
			}
			if got := http2Call(t, fields); got != tc.status {
				t.Errorf("got %s, want %s", got, tc.status)
			}
			if n := len(planned.Requests()); (n > 0) != (tc.status == "200") {
				t.Errorf("%d requests reached a backend", n)
			}
		})
	}
}

// An identity that somebody saw on its way to a backend opens nothing but what
// it was made for: neither another operation of that backend, nor another
// backend, nor, behind the edge, anything at all.
func TestAttackACapturedIdentityIsOfNoUseElsewhere(t *testing.T) {
	for _, op := range []string{"streamEvents", "getRelease", "listReleases"} {
		t.Run(op, func(t *testing.T) {
			planned.Reset()
			ok(t, get(t, calls[op], as("reader")))
			seen := planned.Requests()
			if len(seen) != 1 {
				t.Fatalf("%d requests at the backend", len(seen))
			}
			captured := header(identity.Header, seen[0].Header.Get(identity.Header))
			for _, path := range []string{"/v1/apps/gate-api/live", "/v1/live?app=gate-api", "/v1/live"} {
				_, a, err := try(t.Context(), http.MethodGet, gw.Livehubs[0].URL+path, captured)
				if err != nil {
					t.Fatal(err)
				}
				refused(t, a, 401, "GP-EDGE-401")
				refused(t, get(t, path, captured), 401, "GP-AUTH-001")
				refused(t, get(t, path, captured, as("stranger")), 403, "GP-AUTHZ-001")
			}
		})
	}
}

// What a backend says of a call is added to its line. It never takes the place
// of what the edge and authz know of it.
func TestAttackABackendCannotRewriteTheAuditLine(t *testing.T) {
	fields, err := audit.Encode(audit.Fields{
		"op": "whoami", "tier": "T2", "app": "shop", "caller": "root", "onBehalfOf": "root", "decision": "deny", "status": 299.0, "ms": -1.0,
		"msg": "nothing", "traceId": "forged", "requestId": "forged", "method": "PUT", "prUrl": "https://elsewhere", "name": "x",
	})
	if err != nil {
		t.Fatal(err)
	}
	planned.Answer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add(audit.Header, fields)
		w.Header().Set("X-Glidepath-Trace-Id", "forged")
		w.Header().Set("X-Request-Id", "forged")
	}))
	defer planned.Answer(nil)
	a := ok(t, get(t, "/v1/apps/gate-api/releases", as("reader")))
	if len(a.header.Values("X-Glidepath-Trace-Id")) != 1 || a.traceID() == "forged" {
		t.Errorf("the caller gets the trace ids %q", a.header.Values("X-Glidepath-Trace-Id"))
	}
	if a.header.Get(audit.Header) != "" {
		t.Error("the caller sees what the backend says to the audit line")
	}
	got := auditOf(t, a)
	expectLine(t, got, line{
		"op": "listReleases", "tier": "T0", "app": "gate-api", "caller": username(t, "reader"), "onBehalfOf": nil, "decision": "allow", "status": 200.0,
		"method": "GET", "prUrl": nil, "name": nil,
	})
	if got["requestId"] == "forged" || got["ms"] == -1.0 {
		t.Errorf("the backend wrote %v", got)
	}
}

func TestAttackNoSecretIsInAProcesssArguments(t *testing.T) {
	u, err := url.Parse(gw.Redis.URL)
	if err != nil {
		t.Fatal(err)
	}
	password, _ := u.User.Password()
	secrets := map[string]string{"the password of Redis": password}
	for caller, token := range tokens {
		secrets["the token of "+caller] = token
	}
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(files) == 0 {
		t.Skip("no /proc on this system")
	}
	envoys := 0
	for _, file := range files {
		arguments, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		if bytes.Contains(arguments, []byte(gw.Edges[0].Sockets)) {
			envoys++
		}
		for name, secret := range secrets {
			if bytes.Contains(arguments, []byte(secret)) {
				t.Errorf("%s is in the arguments of a process", name)
			}
		}
	}
	if envoys == 0 {
		t.Error("the gateway's own processes were not among them")
	}
}
