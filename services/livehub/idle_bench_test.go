package livehub

import (
	"bufio"
	"fmt"
	"net"
	"runtime"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/internal/renewal"
	"hangar.io/glidepath/services/livehub/feed"
)

// BenchmarkIdleStream is what a stream on which nothing happens takes of
// memory: what lives in the heap, and the stacks of its goroutines. Its callers
// are a socket each.
func BenchmarkIdleStream(b *testing.B) {
	const streams = 2000
	p := newReplica(b, newCluster(b), "", func(cfg *Config) { cfg.MaxStreams = 2 * streams })
	p.server.live.feeds.open = func(s calls.Scope) *feed.Feed {
		return feed.New(feed.Config{NamespaceUID: s.UID, Source: &still{version: 7}, PollEvery: maxAge})
	}
	l, err := lifecycle.Listen("127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	server := lifecycle.NewServer(p.handler)
	go func() { _ = server.Serve(l) }()
	defer func() { _ = server.Close() }()
	for b.Loop() {
		first := p.idle(b, l.Addr().String(), 100)
		heap, stacks := used()
		rest := p.idle(b, l.Addr().String(), streams)
		heapAfter, stacksAfter := used()
		b.ReportMetric((heapAfter-heap)/streams/1024, "heap-KB/stream")
		b.ReportMetric((stacksAfter-stacks)/streams/1024, "stack-KB/stream")
		for _, conn := range append(first, rest...) {
			_ = conn.Close()
		}
	}
}

// idle opens n streams and reads each up to its snapshot.
func (p *replica) idle(b *testing.B, addr string, n int) (conns []net.Conn) {
	r := p.request("/v1/apps/shop/live/stream", claims("streamLiveRuns", aboutShop),
		"Accept", "text/event-stream", "User-Agent", "bench", "X-Request-Id", "5d2b6d0e-0d8d-4a52-9c52-0d7ad3bd1a3e",
		"Traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", renewal.Header, strings.Repeat("t", 1800))
	r.Host = "livehub"
	var text strings.Builder
	if err := r.Write(&text); err != nil {
		b.Fatal(err)
	}
	lines := bufio.NewReaderSize(nil, 4<<10)
	for range n {
		conn, err := net.Dial("tcp", addr)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := fmt.Fprint(conn, text.String()); err != nil {
			b.Fatal(err)
		}
		lines.Reset(conn)
		for line := ""; !strings.HasPrefix(line, "event: snapshot"); {
			if line, err = lines.ReadString('\n'); err != nil {
				b.Fatal(err)
			}
		}
		conns = append(conns, conn)
	}
	return conns
}

func used() (heap, stacks float64) {
	runtime.GC()
	runtime.GC() // what the first one let go of
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse)
}
