package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// flood attacks one connection until it is told to stop or the edge ends the
// connection. What it returns says how that was.
type flood struct {
	name string
	// settings of the attacker's side.
	settings []http2.Setting
	run      func(ctx context.Context, c *rawHTTP2) error
	// ended says that the edge must have ended the connection by itself.
	ended bool
}

// How long a flood lasts that the edge bears, how long one may last that it
// ends, and what all of them may cost: Envoy would hold more for each, were it
// not bounded.
const (
	floodTime  = time.Second
	endTime    = 20 * time.Second
	floodBytes = 128 << 20
)

// A caller that floods its own connections costs the others nothing: each is
// answered, the edge holds no more memory than it may, and nothing reaches a
// backend undecided.
func TestFloodsOverHTTP2(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	before := e.heap(t)
	for _, f := range floods() {
		t.Run(f.name, func(t *testing.T) {
			limit := floodTime
			if f.ended {
				limit = endTime
			}
			ctx, cancel := context.WithTimeout(t.Context(), limit)
			defer cancel()
			done := make(chan error, 4)
			served, over := context.WithCancel(ctx)
			defer over()
			var running sync.WaitGroup
			for range cap(done) {
				c := e.dialHTTP2(t, f.settings...)
				// Answers are read all the time, or the kernel would end the flood.
				go func() { _, _ = io.Copy(io.Discard, c.conn) }()
				running.Go(func() {
					err := f.run(ctx, c)
					_ = c.conn.Close()
					done <- err
				})
			}
			go func() { running.Wait(); over() }()
			e.wantServed(served, t)
			for range cap(done) {
				if err := <-done; f.ended && err == nil {
					t.Error("the edge let the flood go on")
				}
			}
			if now := e.heap(t); now > before+floodBytes {
				t.Errorf("Envoy holds %d MiB, at first %d", now>>20, before>>20)
			}
			e.wantPaired(t)
		})
	}
}

// floods are the known ways to make a peer work for next to nothing.
func floods() []flood {
	whole, first := block(request()...), block(request()[:2]...)
	next := func(id *uint32) uint32 { *id += 2; return *id - 2 }
	forever := func(send func(c *rawHTTP2, id uint32) error) func(context.Context, *rawHTTP2) error {
		return func(ctx context.Context, c *rawHTTP2) error {
			for id := uint32(1); ctx.Err() == nil; {
				if err := send(c, next(&id)); err != nil {
					return err
				}
			}
			return nil
		}
	}
	opened := func(send func(c *rawHTTP2) error) func(context.Context, *rawHTTP2) error {
		return func(ctx context.Context, c *rawHTTP2) error {
			if err := c.open(1, false, request([2]string{":method", "POST"}, [2]string{":path", "/v1/apps/shop/cicd/validations"})...); err != nil {
				return err
			}
			return forever(func(c *rawHTTP2, _ uint32) error { return send(c) })(ctx, c)
		}
	}
	return []flood{
		{name: "streams that are opened and reset", ended: true, run: forever(func(c *rawHTTP2, id uint32) error {
			return errors.Join(c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: whole, EndStream: true, EndHeaders: true}),
				c.framer.WriteRSTStream(id, http2.ErrCodeCancel))
		})},
		{name: "streams that break the protocol", ended: true, run: forever(func(c *rawHTTP2, id uint32) error {
			return c.open(id, true, request([2]string{"x_y", "z"})...)
		})},
		{name: "headers that go on and on", ended: true, run: func(ctx context.Context, c *rawHTTP2) error {
			if err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: whole}); err != nil {
				return err
			}
			part := block([2]string{"x-more", strings.Repeat("x", 8<<10)})
			return forever(func(c *rawHTTP2, _ uint32) error { return c.framer.WriteContinuation(1, false, part) })(ctx, c)
		}},
		{name: "parts of headers without anything in them", ended: true, run: func(ctx context.Context, c *rawHTTP2) error {
			if err := c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: first}); err != nil {
				return err
			}
			return forever(func(c *rawHTTP2, _ uint32) error { return c.framer.WriteContinuation(1, false, nil) })(ctx, c)
		}},
		{name: "settings", run: forever(func(c *rawHTTP2, _ uint32) error {
			return c.framer.WriteSettings(http2.Setting{ID: http2.SettingHeaderTableSize, Val: 4096})
		})},
		{name: "pings", run: forever(func(c *rawHTTP2, _ uint32) error { return c.framer.WritePing(false, [8]byte{}) })},
		{name: "windows", ended: true, run: opened(func(c *rawHTTP2) error { return c.framer.WriteWindowUpdate(1, 1) })},
		{name: "priorities", ended: true, run: opened(func(c *rawHTTP2) error {
			return c.framer.WritePriority(1, http2.PriorityParam{StreamDep: 3, Weight: 7})
		})},
		{name: "data without data", ended: true, run: opened(func(c *rawHTTP2) error { return c.framer.WriteData(1, false, nil) })},
		{name: "names that unpack to much", run: func(ctx context.Context, c *rawHTTP2) error {
			bomb := headersBomb("x-bomb")
			return forever(func(c *rawHTTP2, id uint32) error {
				return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: bomb(), EndStream: true, EndHeaders: true})
			})(ctx, c)
		}},
		{name: "crumbs of a cookie", run: func(ctx context.Context, c *rawHTTP2) error {
			bomb := headersBomb("cookie")
			return forever(func(c *rawHTTP2, id uint32) error {
				return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: bomb(), EndStream: true, EndHeaders: true})
			})(ctx, c)
		}},
		{name: "answers that nobody takes", settings: []http2.Setting{{ID: http2.SettingInitialWindowSize, Val: 0}}, run: forever(func(c *rawHTTP2, id uint32) error {
			return c.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: whole, EndStream: true, EndHeaders: true})
		})},
	}
}

// headersBomb gives blocks of headers that are a byte a header on the wire and
// a kilobyte each once they are read. The first block teaches the peer the
// header.
func headersBomb(name string) func() []byte {
	var out bytes.Buffer
	enc := hpack.NewEncoder(&out)
	return func() []byte {
		out.Reset()
		for _, f := range request() {
			_ = enc.WriteField(hpack.HeaderField{Name: f[0], Value: f[1]})
		}
		for range 4000 {
			_ = enc.WriteField(hpack.HeaderField{Name: name, Value: strings.Repeat("b", 1000)})
		}
		return bytes.Clone(out.Bytes())
	}
}

// wantServed calls as a well-behaved caller until ctx ends, on connections of
// its own: every call is answered.
func (e *edge) wantServed(ctx context.Context, t *testing.T) {
	t.Helper()
	client := newClient(t)
	for first := true; first || ctx.Err() == nil; first = false {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/v1/live/taskruns", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+goodToken)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatalf("a well-behaved caller got no answer: %v", err)
		}
		readAll(t, resp)
		if resp.StatusCode != http.StatusOK {
			t.Fatalf("a well-behaved caller got %d", resp.StatusCode)
		}
	}
}

// heap gives the bytes that Envoy holds.
func (e *edge) heap(t *testing.T) int64 {
	t.Helper()
	var stats struct {
		Stats []struct {
			Name  string
			Value int64
		}
	}
	if err := json.Unmarshal([]byte(e.admin(t, "/stats?format=json&filter=^server.memory_allocated$")), &stats); err != nil {
		t.Fatal(err)
	}
	if len(stats.Stats) != 1 || stats.Stats[0].Value == 0 {
		t.Fatalf("Envoy does not say what it holds: %+v", stats)
	}
	return stats.Stats[0].Value
}

// Callers that send or read a byte now and then hold connections, and nobody
// else waits for them. The edge ends them when their time is over.
func TestSlowCallers(t *testing.T) {
	t.Parallel()
	e := startStrict(t)
	var running sync.WaitGroup
	defer running.Wait()
	for name, slow := range map[string]struct {
		start string
		most  time.Duration // generous beside the 5 s and 30 s that they have
	}{
		"in its headers": {"GET /v1/live HTTP/1.1\r\nHost: edge\r\nX-A", 25 * time.Second},
		"in its body": {
			"POST /v1/apps/shop/cicd/validations HTTP/1.1\r\nHost: edge\r\nAuthorization: Bearer VALID\r\nContent-Length: 100000\r\n\r\n", time.Minute,
		},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), slow.most)
		defer cancel()
		for range 100 {
			running.Go(func() {
				if err := e.drip(ctx, slow.start); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
		}
	}
	served, stop := context.WithTimeout(t.Context(), time.Second)
	defer stop()
	e.wantServed(served, t)
	running.Wait()
	for _, r := range e.backend.seen() {
		if r.Method == http.MethodPost {
			t.Errorf("%s reached a backend", r.RequestURI)
		}
	}
}

// drip sends a request's start and then byte by byte. It returns nil when the
// edge ends the connection.
func (e *edge) drip(ctx context.Context, start string) error {
	var d net.Dialer
	c, err := d.DialContext(ctx, "tcp", e.addr)
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, start); err != nil {
		return nil
	}
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = io.Copy(io.Discard, c)
	}()
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	defer func() { _ = c.Close(); <-gone }()
	for {
		select {
		case <-gone:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("the edge let a slow caller stay: %w", ctx.Err())
		case <-tick.C:
			if _, err := io.WriteString(c, "a"); err != nil {
				return nil
			}
		}
	}
}
