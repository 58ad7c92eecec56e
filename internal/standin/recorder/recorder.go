// Package recorder is a backend that remembers what reached it and answers 200 with a small JSON object: what the edge let
// through, and how, can be read from it.
package recorder

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"sync"

	"hangar.io/glidepath/internal/standin/loopback"
)

const (
	maxBody     = 1 << 20
	maxRequests = 10_000 // older ones are forgotten
)

// Request is one request as it arrived.
type Request struct {
	Method string
	URI    string // path and query, undecoded
	Host   string
	Header http.Header
	Body   []byte // its first MiB
}

// Recorder is a running backend. All methods may be called concurrently.
type Recorder struct {
	*loopback.Server // its Addr is host:port

	mu       sync.Mutex
	requests []Request
	arrived  chan struct{} // closed and replaced when a request arrives
	answer   http.Handler
}

// Start listens on a port of its own on loopback until Stop.
func Start() (*Recorder, error) {
	r := &Recorder{arrived: make(chan struct{})}
	var err error
	if r.Server, err = loopback.Serve(r); err != nil {
		return nil, fmt.Errorf("starting the recorder: %w", err)
	}
	return r, nil
}

// Answer has a handler answer from now on; nil is the usual answer. The request was remembered before, its body is read.
func (r *Recorder) Answer(h http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answer = h
}

// Requests returns what arrived since the start or the last Reset, oldest first.
func (r *Recorder) Requests() []Request {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]Request(nil), r.requests...)
}

// Reset forgets all requests.
func (r *Recorder) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// ServeHTTP remembers the request and answers it.
func (r *Recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, maxBody))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return // the caller left in the middle
	}
	if h := r.remember(Request{Method: req.Method, URI: req.RequestURI, Host: req.Host, Header: req.Header.Clone(), Body: body}); h != nil {
		h.ServeHTTP(w, req)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, `{"recorded":true}`)
}

func (r *Recorder) remember(req Request) http.Handler {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.requests) == maxRequests {
		r.requests = r.requests[1:]
	}
	r.requests = append(r.requests, req)
	close(r.arrived)
	r.arrived = make(chan struct{})
	return r.answer
}
