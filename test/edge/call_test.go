package edge

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"hangar.io/glidepath/internal/problem"
)

// get makes a GET and reads the answer, whose body stays readable.
func (e *edge) get(t *testing.T, path string, headers ...string) *http.Response {
	t.Helper()
	return e.call(t, http.MethodGet, path, nil, headers...)
}

// call makes a call and reads the answer, whose body stays readable. Headers
// are pairs of name and value.
func (e *edge) call(t *testing.T, method, path string, body io.Reader, headers ...string) *http.Response {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, e.url+path, body)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	resp, err := e.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(readAll(t, resp)))
	return resp
}

// leave makes a call that is not answered, and leaves it once it arrived.
func (e *edge) leave(t *testing.T, method, path string, arrived func() bool, headers ...string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, method, e.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		req.Header.Add(headers[i], headers[i+1])
	}
	gone := make(chan error, 1)
	go func() {
		resp, err := e.client.Do(req)
		if err == nil {
			err = fmt.Errorf("it was answered %d", resp.StatusCode)
			_ = resp.Body.Close()
		}
		gone <- err
	}()
	eventually(t, "the call arrives", arrived)
	leave()
	if err := <-gone; !errors.Is(err, context.Canceled) {
		t.Fatalf("the call that was left: %v", err)
	}
}

// send sends these bytes on a connection of their own and reads one answer.
func (e *edge) send(t *testing.T, request string) *http.Response {
	t.Helper()
	c, err := net.Dial("tcp", e.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(15 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		t.Fatal(err)
	}
	method, _, _ := strings.Cut(request, " ")
	resp, err := http.ReadResponse(bufio.NewReader(c), &http.Request{Method: method})
	if err != nil {
		t.Fatalf("no answer to %q: %v", request, err)
	}
	resp.Body = io.NopCloser(bytes.NewReader(readAll(t, resp)))
	return resp
}

// wantProblem checks that an answer is a rule of the edge, word for word.
func wantProblem(t *testing.T, resp *http.Response, rule problem.Rule) {
	t.Helper()
	if resp.StatusCode != rule.Status {
		t.Errorf("status %d, want %d", resp.StatusCode, rule.Status)
	}
	if got := resp.Header.Get("Content-Type"); got != "application/json" {
		t.Errorf("content type %q", got)
	}
	if got := resp.Header.Get("Cache-Control"); got != "no-store" {
		t.Errorf("cache control %q", got)
	}
	var body problem.Body
	decoder := json.NewDecoder(resp.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		t.Fatalf("the body is no problem: %v", err)
	}
	want := problem.New(rule, "").Body(resp.Header.Get("X-Glidepath-Trace-Id"))
	if body != want {
		t.Errorf("body %+v, want %+v", body, want)
	}
}

// keepCalling makes one call after the other until stop is closed, counts them
// where calls is not nil, and has the test fail with each that is not answered
// 200.
func (e *edge) keepCalling(t *testing.T, client *http.Client, stop <-chan struct{}, calls *atomic.Int64) {
	for {
		select {
		case <-stop:
			return
		default:
		}
		resp, err := client.Get(e.url + "/v1/apps/shop/live")
		if err != nil {
			t.Errorf("a call failed: %v", err)
			return
		}
		_, err = io.Copy(io.Discard, resp.Body)
		_ = resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("a call was answered %d, %v", resp.StatusCode, err)
		}
		if calls != nil {
			calls.Add(1)
		}
	}
}
