package edge

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"golang.org/x/net/http2"
)

// A request in HTTP/2 frames says what it likes: names and values may hold
// bytes that a request line ends at. What is forwarded was decided as what a
// backend reads.
func TestRequestsInOddHTTP2Frames(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	sound := request()
	for name, tt := range map[string]struct {
		fields [][2]string
		want   string
	}{
		"a sound one":                        {sound, "200"},
		"no token":                           {sound[:4], "401"},
		"two tokens":                         {request([2]string{"authorization", "Bearer VALID"}), "401"},
		"two methods":                        {slices.Insert(request(), 1, [2]string{":method", "POST"}), wasReset},
		"two paths":                          {slices.Insert(request(), 4, [2]string{":path", "/v1/apps/shop/live"}), wasReset},
		"two schemes":                        {slices.Insert(request(), 2, [2]string{":scheme", "https"}), wasReset},
		"two authorities":                    {slices.Insert(request(), 3, [2]string{":authority", "elsewhere"}), wasReset},
		"no method":                          {sound[1:], wasReset},
		"no path":                            {slices.Delete(request(), 3, 4), wasReset},
		"no scheme":                          {slices.Delete(request(), 1, 2), wasReset},
		"no authority":                       {slices.Delete(request(), 2, 3), wasReset},
		"an empty path":                      {request([2]string{":path", ""}), wasReset},
		"an empty method":                    {request([2]string{":method", ""}), wasReset},
		"an authority and another host":      {request([2]string{"host", "elsewhere"}), "200"},
		"an authority of a user":             {request([2]string{":authority", "me@edge"}), wasReset},
		"an authority with a path":           {request([2]string{":authority", "edge/v1/apps"}), wasReset},
		"an authority with a space":          {request([2]string{":authority", "edge x"}), wasReset},
		"an authority with a line break":     {request([2]string{":authority", "edge\r\nx: y"}), wasReset},
		"a path without a slash":             {request([2]string{":path", "v1/live"}), wasReset},
		"a path that is a URL":               {request([2]string{":path", "http://edge/v1/live"}), wasReset},
		"a path that is a star":              {request([2]string{":path", "*"}), wasReset},
		"a path with a space":                {request([2]string{":path", "/v1/live HTTP/1.1"}), wasReset},
		"a path with a tab":                  {request([2]string{":path", "/v1/live?\t"}), wasReset},
		"a path with a line break":           {request([2]string{":path", "/v1/live HTTP/1.1\r\nX: y\r\n\r\n"}), wasReset},
		"a path with a NUL":                  {request([2]string{":path", "/v1/live?\x00"}), wasReset},
		"a path with a fragment":             {request([2]string{":path", "/v1/live#top"}), "400"},
		"a path with a delete":               {request([2]string{":path", "/v1/live?\x7f"}), wasReset},
		"a path with letters beyond ASCII":   {request([2]string{":path", "/v1/live?\xc3\xa9"}), "400"},
		"a path with bytes that are no text": {request([2]string{":path", "/v1/apps/a\xff/live"}), "400"},
		"a path with an invisible space":     {request([2]string{":path", "/v1/live?\xc2\xa0"}), "400"},
		"a path with dots":                   {request([2]string{":path", "/v1/apps/../live"}), "200"},
		"a path with an encoded slash":       {request([2]string{":path", "/v1/apps/a%2fb/live"}), "400"},
		"a method in small letters":          {request([2]string{":method", "get"}), "405"},
		"a method with a space":              {request([2]string{":method", "GET /v1/apps/shop/live"}), wasReset},
		"a method with a line break":         {request([2]string{":method", "GET\r\n\r\n"}), wasReset},
		"a tunnel":                           {[][2]string{{":method", "CONNECT"}, {":authority", "livehub:80"}, {"authorization", "Bearer VALID"}}, wasClosed},
		"a tunnel that says where to":        {request([2]string{":method", "CONNECT"}), wasReset},
		"a WebSocket":                        {request([2]string{":method", "CONNECT"}, [2]string{":protocol", "websocket"}), wasReset},
		"a protocol without a tunnel":        {slices.Insert(request(), 4, [2]string{":protocol", "websocket"}), wasReset},
		"a pseudo-header of nobody's":        {slices.Insert(request(), 4, [2]string{":op", "whoami"}), wasReset},
		"a pseudo-header of answers":         {slices.Insert(request(), 4, [2]string{":status", "200"}), wasReset},
		"a pseudo-header behind the headers": {request([2]string{":x", "y"}), wasReset},
		"a scheme of another kind":           {request([2]string{":scheme", "ftp"}), "200"},
		"a scheme in upper case":             {request([2]string{":scheme", "HTTP"}), "200"},
		"a header in upper case":             {request([2]string{"X-Glidepath-Identity", "me"}), wasReset},
		"a header with an underscore":        {request([2]string{"x_glidepath_identity", "me"}), wasReset},
		"a header without a name":            {request([2]string{"", "me"}), wasReset},
		"a header with a colon in its name":  {request([2]string{"a:b", "me"}), wasReset},
		"a header with a space in its name":  {request([2]string{"x a", "me"}), wasReset},
		"a header with a line break":         {request([2]string{"x", "a\r\nx-glidepath-identity: me"}), wasReset},
		"a header with a NUL":                {request([2]string{"x", "a\x00"}), wasReset},
		"a coding of HTTP/1.1":               {request([2]string{"transfer-encoding", "chunked"}), wasReset},
		"a connection's header":              {request([2]string{"connection", "x-glidepath-identity"}), wasReset},
		"a proxy's connection's header":      {request([2]string{"proxy-connection", "close"}), wasReset},
		"an upgrade":                         {request([2]string{"upgrade", "h2c"}), wasReset},
		"trailers":                           {request([2]string{"te", "trailers"}), "200"},
		"anything else to wait for":          {request([2]string{"te", "gzip"}), wasReset},
		"a length that is not the body's":    {request([2]string{"content-length", "5"}), wasReset},
		"an identity":                        {request([2]string{"x-glidepath-identity", "me"}), "200"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := e.dialHTTP2(t)
			if err := c.open(1, true, tt.fields...); err != nil {
				t.Fatal(err)
			}
			if got := c.outcome(t, 1); got != tt.want {
				t.Errorf("got %s, want %s", got, tt.want)
			}
			e.wantPaired(t)
		})
	}
}

// The line says what was sent in a few bytes, however long a method is; and a
// path with bytes that nobody sees is refused before anybody is asked.
//
// rule: R403
func TestTheLineOfALongMethodAndOfAnInvisiblePath(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	const long = 8 << 10
	c := e.dialHTTP2(t)
	send := func(id uint32, want string, change [2]string) {
		t.Helper()
		if err := c.open(id, true, request(change)...); err != nil {
			t.Fatal(err)
		}
		if got := c.outcome(t, id); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	send(1, "405", [2]string{":method", strings.Repeat("M", long)})
	e.lineWhere(t, "of the long method", func(l line) bool { return l["method"] == strings.Repeat("M", 20) }).
		want(t, line{"op": "_unmatched", "status": 405.0, "rule": "GP-EDGE-405", "decision": "deny"})
	send(3, "400", [2]string{":path", "/v1/live?\xe2\x80\x8b"})
	e.lineWhere(t, "of the invisible path", func(l line) bool { return l["op"] == "_badpath" }).
		want(t, line{"status": 400.0, "rule": "GP-EDGE-400", "decision": "deny", "caller": nil})
	if n := e.authz.ledger.Load().refused; n != 1 { // the method's alone
		t.Errorf("authz was asked of %d refusals", n)
	}
	if n := e.wantPaired(t); n != 0 {
		t.Errorf("%d requests reached a backend", n)
	}
}

// Frames around a request that break the protocol end the stream or the
// connection; a request in them is served only when it is whole.
func TestOddSequencesOfHTTP2Frames(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	half := block(request()...)
	for name, tt := range map[string]struct {
		send func(*rawHTTP2) error
		want []string // any of them
	}{
		"headers on stream 0":            {func(c *rawHTTP2) error { return c.open(0, true, request()...) }, []string{wasClosed}},
		"headers on a stream of answers": {func(c *rawHTTP2) error { return c.open(2, true, request()...) }, []string{wasClosed}},
		"data before any headers":        {func(c *rawHTTP2) error { return c.framer.WriteData(1, true, []byte("x")) }, []string{wasClosed, wasReset}},
		"a frame larger than is allowed": {func(c *rawHTTP2) error { return c.framer.WriteRawFrame(http2.FrameData, 0, 1, make([]byte, 20<<10)) }, []string{wasClosed}},
		"settings that are cut off":      {func(c *rawHTTP2) error { return c.framer.WriteRawFrame(http2.FrameSettings, 0, 0, make([]byte, 5)) }, []string{wasClosed}},
		"a window that overflows":        {func(c *rawHTTP2) error { return c.framer.WriteWindowUpdate(0, 1<<31-1) }, []string{wasClosed}},
		"a ping of nine bytes":           {func(c *rawHTTP2) error { return c.framer.WriteRawFrame(http2.FramePing, 0, 0, make([]byte, 9)) }, []string{wasClosed}},
		"a promise of a caller's": {func(c *rawHTTP2) error {
			return c.framer.WriteRawFrame(http2.FramePushPromise, 4, 1, append([]byte{0, 0, 0, 2}, half...))
		}, []string{wasClosed}},
		"a continuation of nothing": {func(c *rawHTTP2) error { return c.framer.WriteContinuation(1, true, half) }, []string{wasClosed}},
		"headers that are not HPACK": {func(c *rawHTTP2) error {
			return c.framer.WriteRawFrame(http2.FrameHeaders, 5, 1, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0x7f})
		}, []string{wasClosed}},
		"an index that is not there": {func(c *rawHTTP2) error { return c.framer.WriteRawFrame(http2.FrameHeaders, 5, 1, []byte{0xfe}) }, []string{wasClosed}},
		"a frame of no known kind": {func(c *rawHTTP2) error {
			return errors.Join(c.framer.WriteRawFrame(0x99, 0, 1, half), c.open(1, true, request()...))
		}, []string{"200"}},
		"headers in two parts": {func(c *rawHTTP2) error {
			return errors.Join(c.framer.WriteRawFrame(http2.FrameHeaders, 1, 1, half[:7]), c.framer.WriteContinuation(1, true, half[7:]))
		}, []string{"200"}},
		"a frame between two parts": {func(c *rawHTTP2) error {
			return errors.Join(c.framer.WriteRawFrame(http2.FrameHeaders, 1, 1, half[:7]), c.framer.WritePing(false, [8]byte{}), c.framer.WriteContinuation(1, true, half[7:]))
		}, []string{wasClosed}},
		"a body after the end": {func(c *rawHTTP2) error {
			return errors.Join(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: half, EndHeaders: true, EndStream: true}), c.framer.WriteData(1, true, []byte("GET /v1/live HTTP/1.1\r\n\r\n")))
		}, []string{wasClosed, wasReset, "200"}},
		"a body longer than its length": {func(c *rawHTTP2) error {
			return errors.Join(c.open(1, false, request([2]string{"content-length", "1"})...), c.framer.WriteData(1, true, []byte("xyz")))
		}, []string{wasReset}},
		"a pseudo-header in the trailers": {func(c *rawHTTP2) error {
			return errors.Join(c.open(1, false, request()...), c.open(1, true, [2]string{":path", "/v1/apps/shop/live"}))
		}, []string{wasReset}},
		"an identity in the trailers": {func(c *rawHTTP2) error {
			return errors.Join(c.open(1, false, request()...), c.open(1, true, [2]string{"x-glidepath-identity", "me"}))
		}, []string{"200"}},
		"a token in the trailers": {func(c *rawHTTP2) error {
			return errors.Join(c.open(1, false, request()[:4]...), c.open(1, true, [2]string{"authorization", "Bearer VALID"}))
		}, []string{"401"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := e.dialHTTP2(t)
			_ = tt.send(c) // the edge may close in the middle of it
			if got := c.outcome(t, 1); !slices.Contains(tt.want, got) {
				t.Errorf("got %s, want one of %v", got, tt.want)
			}
			e.wantPaired(t)
		})
	}
}
