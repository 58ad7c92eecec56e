package edge

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"math"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/problem"
)

// How long an answer may take that has to come, and how long nothing must come
// for the answers to be over. Nothing is proved by the silence: a test that
// counts answers says how many it waits for.
const (
	answerTime = 15 * time.Second
	silence    = 100 * time.Millisecond
)

// untilClosed waits for as many answers as come before one that says it is the
// last: for requests that ask for the connection to be closed.
const untilClosed = math.MaxInt

// exchange sends these bytes on a connection of their own and reads answers
// until the edge closes it, or says no more after that many. Interim answers
// are left out.
func (e *edge) exchange(t *testing.T, request string, wanted int) []*http.Response {
	t.Helper()
	c, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	_, _ = io.WriteString(c, request) // the edge may close before it has read all
	method, _, _ := strings.Cut(strings.TrimLeft(request, "\r\n"), " ")
	var out []*http.Response
	wait := answerTime
	for r := bufio.NewReader(c); ; {
		readUntil(t, c, wait)
		resp, err := http.ReadResponse(r, &http.Request{Method: method})
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded) && len(out) == 0:
			t.Fatalf("no answer to %.200q", request)
		case err != nil:
			return out
		case resp.StatusCode < 200:
			continue
		}
		readUntil(t, c, answerTime) // it has begun, so the rest is due
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatalf("an answer to %.200q breaks off: %v", request, err)
		}
		resp.Body = io.NopCloser(bytes.NewReader(body))
		out = append(out, resp)
		method = http.MethodGet
		if len(out) >= wanted || resp.Close {
			wait = silence
		}
	}
}

func readUntil(t *testing.T, c net.Conn, wait time.Duration) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(wait)); err != nil {
		t.Fatal(err)
	}
}

// wantSound checks that an answer is a backend's or a problem with a rule.
func wantSound(t *testing.T, resp *http.Response) {
	t.Helper()
	if resp.StatusCode == http.StatusOK {
		if resp.Header.Get("X-Glidepath-Trace-Id") == "" {
			t.Error("a call was let through and its answer has no trace id")
		}
		return
	}
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(raw))
	if resp.Request != nil && resp.Request.Method == http.MethodHead {
		return
	}
	var body problem.Body
	if err := json.Unmarshal(raw, &body); err != nil || !strings.HasPrefix(body.Rule, "GP-") || body.Message == "" {
		t.Errorf("the answer %d is no problem: %.200q", resp.StatusCode, raw)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" || resp.StatusCode < 400 {
		t.Errorf("the answer is %d of type %q", resp.StatusCode, got)
	}
}

func statusesOf(answers []*http.Response) []int {
	var out []int
	for _, a := range answers {
		out = append(out, a.StatusCode)
	}
	return out
}

// halfClosed sends these bytes and no more, and reads the statuses of what
// answers there are until the edge closes the connection.
func (e *edge) halfClosed(t *testing.T, request string) []int {
	t.Helper()
	c, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(c, request)
	_ = c.(*net.TCPConn).CloseWrite() // the edge may have closed it already
	raw, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the edge neither answers nor closes")
	}
	var out []int
	for r := bufio.NewReader(bytes.NewReader(raw)); ; {
		resp, err := http.ReadResponse(r, nil)
		if err != nil {
			return out
		}
		_, _ = io.Copy(io.Discard, resp.Body)
		out = append(out, resp.StatusCode)
	}
}
