package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
)

// openStream is a stream that a caller has open: a log that is followed.
type openStream struct {
	trace  string
	opened time.Time
	lines  chan string   // what comes
	ended  chan struct{} // closed at the end; then at and err are set
	at     time.Time
	err    error // nil when the log looks whole
}

// openAt has a caller follow a log until the test ends or leave is called.
func openAt(t *testing.T, g *devenv.Gateway, path string, changes ...change) (s *openStream, leave func()) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	t.Cleanup(leave)
	s = &openStream{lines: make(chan string, 64), ended: make(chan struct{}), opened: time.Now()}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.URL+path+"?follow=true", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		c(r)
	}
	resp, err := streamClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = resp.Body.Close() })
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: got %d", path, resp.StatusCode)
	}
	s.trace = resp.Header.Get("X-Glidepath-Trace-Id")
	go func() {
		defer close(s.ended)
		scan := bufio.NewScanner(resp.Body)
		for scan.Scan() {
			s.lines <- scan.Text()
		}
		s.at, s.err = time.Now(), scan.Err()
	}()
	return s, leave
}

// open says whether the stream still is.
func (s *openStream) open() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// shows fails the test unless a line comes.
func (s *openStream) shows(t *testing.T, what string) {
	t.Helper()
	select {
	case <-s.lines:
	case <-s.ended:
		t.Errorf("%s: the stream has ended: %v", what, s.err)
	case <-time.After(callTimeout):
		t.Errorf("%s: nothing comes", what)
	}
}

// streamLines gives the lines of a process's log that say why streams ended.
func streamLines(t *testing.T, file string) []line {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var found []line
	for text := range bytes.Lines(raw) {
		var l line
		if json.Unmarshal(text, &l) == nil && l["msg"] == "audit.stream" {
			found = append(found, l)
		}
	}
	return found
}
