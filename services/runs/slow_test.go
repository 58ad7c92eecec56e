package runs

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/services/runs/results"
)

// pipes is a listener of connections that hold nothing: what a caller does not read,
// the server has not written. It is for a bubble.
type pipes struct {
	dialed chan net.Conn
	ctx    context.Context
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.dialed:
		return c, nil
	case <-p.ctx.Done():
		return nil, net.ErrClosed
	}
}

func (*pipes) Close() error   { return nil }
func (*pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

// pipes serves the world as its process does, to callers whom a header names.
func (w *world) pipes() *pipes {
	w.t.Helper()
	ctx, stop := context.WithCancel(w.t.Context())
	p := &pipes{dialed: make(chan net.Conn), ctx: ctx}
	srv := lifecycle.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		claims := about(r.Header.Get("Op"))
		claims.Subject = r.Header.Get("Caller")
		w.mux().ServeHTTP(to, r.WithContext(identity.NewContext(r.Context(), claims)))
	}))
	served := make(chan struct{})
	go func() { defer close(served); _ = srv.Serve(p) }()
	w.t.Cleanup(func() { stop(); <-served; _ = srv.Close() })
	return p
}

// caller is a call that has its answer's header.
type caller struct {
	*http.Response
	conn net.Conn
}

// call makes a call and reads nothing of its body.
func (p *pipes) call(t *testing.T, who, op, target string, headers ...string) *caller {
	t.Helper()
	here, there := net.Pipe()
	p.dialed <- there
	t.Cleanup(func() { _ = here.Close() })
	if _, err := fmt.Fprintf(here, "GET %s HTTP/1.1\r\nHost: runs\r\nConnection: close\r\nCaller: %s\r\nOp: %s\r\n%s\r\n", target, who, op, strings.Join(append(headers, ""), "\r\n")); err != nil {
		t.Fatal(err)
	}
	// As few bytes as there may be are read with the header.
	got, err := http.ReadResponse(bufio.NewReaderSize(here, 16), nil)
	if err != nil {
		t.Fatal(err)
	}
	return &caller{got, here}
}

// rest gives how many bytes of the body come.
func (c *caller) rest() (int64, error) { return io.Copy(io.Discard, c.Body) }

// random is text that nothing makes shorter.
func random(seed, size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), 1}).Read(b) // never fails
	return string(b)
}

// withLogs archives a run with TaskRuns, each with a log of a size.
func (w *world) withLogs(logs, size int) {
	w.archive.runs = []results.Record{pipelineRun(shopNamespace, 1, w.now)}
	w.archive.logs = map[string]string{}
	for m := range logs {
		task := taskRun(shopNamespace, 1, m+1, w.now)
		w.archive.tasks = append(w.archive.tasks, task)
		w.archive.logs[task.UID] = random(m, size)
	}
}

// logOf is the log of a TaskRun of withLogs.
func logOf(m int) string { return fmt.Sprintf("/v1/apps/shop/runs/%s/logs/run-1-task-%d", uidOf(1), m) }

// stalled is when nobody is waited for any more who read nothing.
const stalled = stall + time.Second
