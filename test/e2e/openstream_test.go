package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
)

// openStream is a stream that a caller has open: a log that is followed, or the
// live stream of an app.
type openStream struct {
	trace  string
	opened time.Time
	lines  chan string   // what comes of a log
	ended  chan struct{} // closed at the end; then at, err and last are set
	at     time.Time
	err    error  // nil when the answer looks whole
	last   string // the type and the data of a live stream's last event
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

// openLive has a caller look at the live stream of an app until the test ends.
func openLive(t *testing.T, g *devenv.Gateway, app string, changes ...change) *openStream {
	t.Helper()
	s := &openStream{ended: make(chan struct{}), opened: time.Now()}
	v := newViewer(g.URL, app, changes...).open(t)
	s.trace = v.header.Get("X-Glidepath-Trace-Id")
	v.next(t, "snapshot")
	go func() {
		defer close(s.ended)
		for {
			e, err := v.step()
			if err != nil {
				s.at = time.Now()
				if !errors.Is(err, io.EOF) {
					s.err = err
				}
				return
			}
			s.last = e.Type + " " + string(e.Data)
		}
	}()
	return s
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
