package edge

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hangar.io/glidepath/internal/audit"
	"hangar.io/glidepath/internal/lifecycle"
)

// fakeBackend answers every operation. What it does is in the query parameter
// do; by default it answers with the headers that it got.
type fakeBackend struct {
	addr string

	mu    sync.Mutex
	calls []*http.Request
	left  chan struct{} // one for each caller that was seen to leave
	fails int           // how many more calls to drop without an answer
}

func startBackend(t *testing.T) *fakeBackend {
	t.Helper()
	b := &fakeBackend{left: make(chan struct{}, 64)}
	l, err := lifecycle.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b.addr = l.Addr().String()
	b.serve(t, l)
	return b
}

// startBackendOn answers on a Unix socket too.
func startBackendOn(t *testing.T, socket string, b *fakeBackend) {
	t.Helper()
	l, err := lifecycle.ListenUnix(socket)
	if err != nil {
		t.Fatal(err)
	}
	b.serve(t, l)
}

func (b *fakeBackend) serve(t *testing.T, l net.Listener) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- lifecycle.Serve(l, b)(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("backend: %v", err)
		}
	})
}

// count says how many calls with this marker in their query arrived.
func (b *fakeBackend) count(marker string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	n := 0
	for _, r := range b.calls {
		if strings.Contains(r.URL.RawQuery, marker) {
			n++
		}
	}
	return n
}

// seen gives the calls so far.
func (b *fakeBackend) seen() []*http.Request {
	b.mu.Lock()
	defer b.mu.Unlock()
	return slices.Clone(b.calls)
}

// wantLeft waits until a caller was seen to leave.
func (b *fakeBackend) wantLeft(t *testing.T) {
	t.Helper()
	select {
	case <-b.left:
	case <-time.After(20 * time.Second):
		t.Fatal("the backend did not see the caller leave")
	}
}

func (b *fakeBackend) drop() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.fails == 0 {
		return false
	}
	b.fails--
	return true
}

// ServeHTTP does what the call asks for.
func (b *fakeBackend) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	b.mu.Lock()
	b.calls = append(b.calls, r.Clone(context.Background()))
	b.mu.Unlock()
	switch r.URL.Query().Get("do") {
	case "hang":
		<-r.Context().Done()
		b.left <- struct{}{}
	case "stream":
		b.stream(w, r)
	case "endless":
		for err := error(nil); err == nil; _, err = w.Write(make([]byte, 64<<10)) {
		}
	case "trickle":
		trickle(w, r)
	case "cut":
		raw(w, "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc")
	case "garbage":
		raw(w, "this is not HTTP\r\n\r\n")
	case "drop":
		if b.drop() {
			raw(w, "")
			return
		}
		_, _ = w.Write([]byte("at last"))
	case "not-modified":
		w.WriteHeader(http.StatusNotModified)
	case "fail":
		setAudit(w, audit.Fields{"rule": "GP-API-502", "error": "the source failed"})
		w.WriteHeader(http.StatusBadGateway)
	case "fail-slowly":
		setAudit(w, audit.Fields{"rule": "GP-API-502", "error": "the source failed"})
		w.WriteHeader(http.StatusBadGateway)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
		b.left <- struct{}{}
	case "audit":
		setAudit(w, audit.Fields{
			"name": "shop-build-x7k2p", "dryRun": true, "created": false, "replayed": true,
			"idempotencyKeySha256": "0123456789ab", "prUrl": "https://example.test/1", "secret": "s3cr3t",
			"caller": "somebody-else", "status": 299,
		})
	case "audit-garbage":
		w.Header().Set(audit.Header, "%%% not base64 %%%")
	case "audit-large":
		w.Header().Set(audit.Header, strings.Repeat("QUFB", 3000))
	default:
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(r.Header) // the caller may be gone
	}
}

// stream sends one event and keeps the answer open until the caller leaves.
func (b *fakeBackend) stream(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = fmt.Fprint(w, "id: 1\ndata: {}\n\n")
	_ = http.NewResponseController(w).Flush()
	<-r.Context().Done()
	b.left <- struct{}{}
}

// trickle sends a byte again and again until the caller leaves.
func trickle(w http.ResponseWriter, r *http.Request) {
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		if _, err := w.Write([]byte(".")); err != nil {
			return
		}
		if err := http.NewResponseController(w).Flush(); err != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-tick.C:
		}
	}
}

// raw takes the connection over, sends exactly these bytes and closes it.
func raw(w http.ResponseWriter, bytes string) {
	c, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		return
	}
	_, _ = c.Write([]byte(bytes))
	_ = c.Close()
}

func setAudit(w http.ResponseWriter, f audit.Fields) {
	if err := audit.Set(w.Header(), f); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
