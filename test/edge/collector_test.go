package edge

import (
	"bytes"
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/lifecycle"
)

// collector takes spans over OTLP/HTTP and keeps the bytes: the names and
// values of a span stand in them as they are.
type collector struct {
	addr string

	mu   sync.Mutex
	path string
	got  []byte
}

func startCollector(t *testing.T) *collector {
	t.Helper()
	l, err := lifecycle.Listen("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return serveCollector(t, l)
}

// startCollectorOn starts one that is reached over TLS.
func startCollectorOn(t *testing.T, shown pki.Pair) *collector {
	t.Helper()
	cert, err := shown.TLS()
	if err != nil {
		t.Fatal(err)
	}
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13})
	if err != nil {
		t.Fatal(err)
	}
	return serveCollector(t, l)
}

func serveCollector(t *testing.T, l net.Listener) *collector {
	t.Helper()
	c := &collector{addr: l.Addr().String()}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- lifecycle.Serve(l, c)(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("collector: %v", err)
		}
	})
	return c
}

func (c *collector) bytes() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.got)
}

// ServeHTTP takes one export.
func (c *collector) ServeHTTP(_ http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.path = r.URL.Path
	c.got = append(c.got, body...)
}

func (c *collector) waitFor(t *testing.T, words []string) {
	t.Helper()
	eventually(t, "the span has arrived whole", func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		for _, w := range words {
			if !bytes.Contains(c.got, []byte(w)) {
				return false
			}
		}
		return true
	})
	if c.path != "/v1/traces" {
		t.Errorf("the spans came to %s", c.path)
	}
}
