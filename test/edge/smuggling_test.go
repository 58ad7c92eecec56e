package edge

import (
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

// A request that an attacker wants somebody to read where the edge reads a
// body. It has the good token, so whoever reads it as a request answers it.
const hidden = "GET /v1/live?hidden HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer VALID\r\nConnection: close\r\n\r\n"

// Each of these means one request to one reader and two to another. The edge
// refuses it, or forwards one request and reads the rest as its body; where it
// reads a second request, that one is decided by itself.
//
// The connection is closed with the refusal: nothing behind it is read.
func TestARequestThatTwoReadersReadDifferently(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	length := fmt.Sprintf("Content-Length: %d\r\n", len(hidden))
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(hidden), hidden)
	const chunked = "Transfer-Encoding: chunked\r\n"
	refused, one, two := []int{400}, []int{200}, []int{200, 200}
	var answers atomic.Int32
	cases := map[string]struct {
		headers, body string
		want          []int
	}{
		"a length":                               {length, hidden, one},
		"chunks":                                 {chunked, chunk, one},
		"no body: a second request":              {"", hidden, two},
		"an empty body: a second request":        {"Content-Length: 0\r\n", hidden, two},
		"no chunk: a second request":             {chunked, "0\r\n\r\n" + hidden, two},
		"the same length twice":                  {length + length, hidden, refused},
		"two lengths, the smaller first":         {"Content-Length: 0\r\n" + length, hidden, refused},
		"two lengths, the smaller last":          {length + "Content-Length: 0\r\n", hidden, refused},
		"two lengths in one":                     {"Content-Length: 0, 0\r\n", hidden, refused},
		"a length that is not decimal":           {"Content-Length: 0x0\r\n", hidden, refused},
		"a length with a sign":                   {"Content-Length: +0\r\n", hidden, refused},
		"a length below zero":                    {"Content-Length: -1\r\n", hidden, refused},
		"a length with a blank inside":           {"Content-Length: 0 0\r\n", hidden, refused},
		"a length with an underscore":            {"Content-Length: 0_0\r\n", hidden, refused},
		"a length of nothing":                    {"Content-Length: \r\n", hidden, refused},
		"a length beyond 64 bits":                {"Content-Length: 18446744073709551616\r\n", hidden, refused},
		"a length in exponents":                  {"Content-Length: 0e0\r\n", hidden, refused},
		"a length with a blank before its colon": {"Content-Length : 0\r\n", hidden, refused},
		"a length with an underscore for a dash": {"Content_Length: 0\r\n" + length, hidden, refused},
		"a length, then chunks":                  {"Content-Length: 4\r\n" + chunked, chunk, refused},
		"chunks, then a length":                  {chunked + length, "0\r\n\r\n" + hidden, refused},
		"chunks twice":                           {chunked + chunked, chunk, refused},
		"chunks, then another coding":            {chunked + "Transfer-Encoding: identity\r\n", chunk, refused},
		"another coding, then chunks":            {"Transfer-Encoding: identity\r\n" + chunked, chunk, refused},
		"chunks and gzip in one":                 {"Transfer-Encoding: gzip, chunked\r\n", chunk, refused},
		"chunks that are not last":               {"Transfer-Encoding: chunked, gzip\r\n", chunk, refused},
		"chunks with a parameter":                {"Transfer-Encoding: chunked;q=1\r\n", chunk, refused},
		"chunks in quotes":                       {"Transfer-Encoding: \"chunked\"\r\n", chunk, refused},
		"chunks after a comma":                   {"Transfer-Encoding: ,chunked\r\n", chunk, refused},
		"chunks after a vertical tab":            {"Transfer-Encoding: \vchunked\r\n", chunk, refused},
		"chunks before a NUL":                    {"Transfer-Encoding: chunked\x00\r\n", chunk, refused},
		"chunks that are almost that":            {"Transfer-Encoding: xchunked\r\n", chunk, refused},
		"chunks by a letter like k":              {"Transfer-Encoding: chun\xe2\x84\xaaed\r\n", chunk, refused},
		"a coding of nothing":                    {"Transfer-Encoding: \r\n" + length, hidden, refused},
		"chunks with a blank before their colon": {"Transfer-Encoding : chunked\r\n", chunk, refused},
		"chunks with a tab before their colon":   {"Transfer-Encoding\t: chunked\r\n", chunk, refused},
		"chunks behind a folded line":            {"X-A: b\r\n Transfer-Encoding: chunked\r\n" + length, hidden, one},
		"chunks on a folded line":                {"Transfer-Encoding:\r\n chunked\r\n", chunk, one},
		"chunks behind a bare line feed":         {"X-A: b\n" + chunked, chunk, one},
		"a length behind a bare line feed":       {"X-A: b\n" + length, hidden, one},
		"a length behind a carriage return":      {"X-A: b\r" + length, hidden, two}, // Envoy drops the return
		"a header without a colon":               {"Transfer-Encoding\r\n" + length, hidden, refused},
		"a header without a name":                {": chunked\r\n" + length, hidden, refused},
		"a header name with a space":             {"X A: b\r\n", hidden, refused},
		"a header name with a NUL":               {"X\x00A: b\r\n", hidden, refused},
		"a header value with a NUL":              {"X-A: b\x00c\r\n", hidden, refused},
		"a line that folds into the token":       {" X-A: b\r\n", hidden, []int{401, 200}},
		"a chunk size with a sign":               {chunked, "+0\r\n\r\n" + hidden, refused},
		"a chunk size with 0x":                   {chunked, "0x0\r\n\r\n" + hidden, refused},
		"a chunk size below zero":                {chunked, "-1\r\n\r\n" + hidden, refused},
		"a chunk size with an underscore":        {chunked, "0_0\r\n\r\n" + hidden, refused},
		"a chunk size after a space":             {chunked, " 0\r\n\r\n" + hidden, refused},
		"a chunk size of nothing":                {chunked, "\r\n\r\n" + hidden, refused},
		"a chunk size beyond 64 bits":            {chunked, "10000000000000000\r\n\r\n" + hidden, refused},
		"a chunk size that ends in a line feed":  {chunked, "0\n\n" + hidden, refused},
		"a chunk size that ends in a return":     {chunked, "0\r\r" + hidden, refused},
		"a chunk that is longer than its size":   {chunked, "1\r\naXX0\r\n\r\n" + hidden, refused},
		"a chunk without an end":                 {chunked, "1\r\na0\r\n\r\n" + hidden, refused},
		"a line feed in a chunk's extension":     {chunked, "0;a\nb\r\n\r\n" + hidden, refused},
		"an extension of a chunk":                {chunked, "1;a=b\r\nx\r\n0;c=\"d\"\r\n\r\n" + hidden, two},
		"a chunk size with many zeros":           {chunked, "0000000000000000000000000000000000\r\n\r\n" + hidden, two},
		"a length that the connection drops":     {length + "Connection: Content-Length\r\n", hidden, one},
		"chunks that the connection drops":       {chunked + "Connection: Transfer-Encoding\r\n", chunk, one},
		"a trailer that is a length":             {chunked, "0\r\n" + length + "\r\n" + hidden, two},
		"a trailer that is a coding":             {chunked, "0\r\n" + chunked + "\r\n" + hidden, two},
		"an upgrade":                             {"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n", hidden, refused},
		"an expectation before a body":           {"Expect: 100-continue\r\n" + length, hidden, one},
	}
	t.Run("is refused, or is one request and its body:", func(t *testing.T) {
		for name, tt := range cases {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				got := e.exchange(t, "POST /v1/apps/shop/cicd/validations HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer VALID\r\n"+tt.headers+"\r\n"+tt.body, len(tt.want))
				for _, a := range got {
					wantSound(t, a)
				}
				if !slices.Equal(statusesOf(got), tt.want) {
					t.Errorf("answered %v, want %v", statusesOf(got), tt.want)
				}
				answers.Add(int32(len(got)))
			})
		}
	})
	if n := e.wantAllPaired(t, int(answers.Load())); n < 20 {
		t.Errorf("only %d requests reached a backend: the table refuses too much to show anything", n)
	}
}

// A caller that sends a second request before the first is answered gets each
// decided by itself: what the first was allowed does not carry over.
func TestPipelinedRequestsAreDecidedOneByOne(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	const good, bad = "Authorization: Bearer VALID\r\n", "Authorization: Bearer OTHER\r\n"
	request := func(target, headers string) string {
		return "GET " + target + " HTTP/1.1\r\nHost: edge\r\n" + headers + "\r\n"
	}
	var all strings.Builder
	var want []int
	for range 5 {
		all.WriteString(request("/v1/live", good) + request("/v1/live", "") + request("/v1/live/taskruns", good) +
			request("/v1/live", bad) + request("/v1/apps/shop/live", good) + request("/v1/nothing", good))
		want = append(want, 200, 401, 200, 401, 200, 404)
	}
	got := e.exchange(t, all.String(), len(want))
	if !slices.Equal(statusesOf(got), want) {
		t.Errorf("answered %v, want %v", statusesOf(got), want)
	}
	if n := e.wantAllPaired(t, len(want)); n != 15 {
		t.Errorf("%d requests reached a backend", n)
	}
}
