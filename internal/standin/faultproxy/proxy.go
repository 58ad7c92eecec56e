// Package faultproxy stands between a client and a real HTTP server, the Kubernetes API server above all, passes everything on, and
// on demand makes the server look slow, broken or gone. It speaks HTTP/1.1 and HTTP/2 over TLS, like what it stands in front of.
package faultproxy

import (
	"crypto/tls"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"time"
)

// Config is where the proxy listens and what it passes requests to. All fields are required.
type Config struct {
	Addr        string          // host:port
	Certificate tls.Certificate // shown to clients
	Target      string          // https URL without a path
	TargetTLS   *tls.Config     // how the target is trusted
}

// Proxy passes requests on. It starts without faults. All methods may be called concurrently.
type Proxy struct {
	cfg       Config
	proxy     *httputil.ReverseProxy
	transport *http.Transport

	mu     sync.Mutex
	server *http.Server  // nil while down
	served chan struct{} // closed when server's accept loop has ended
	faults []*Fault
	counts map[request]int
	seen   func(*http.Request) // nil for nobody
}

type request struct{ method, path string }

// Start listens and passes requests on until Stop.
func Start(cfg Config) (*Proxy, error) {
	target, err := url.Parse(cfg.Target)
	if err != nil {
		return nil, fmt.Errorf("reading the fault proxy's target: %w", err)
	}
	quiet := slog.NewLogLogger(slog.DiscardHandler, slog.LevelError) // its faults are made on purpose
	p := &Proxy{cfg: cfg, counts: map[request]int{}}
	p.transport = &http.Transport{TLSClientConfig: cfg.TargetTLS, ForceAttemptHTTP2: true, IdleConnTimeout: time.Minute}
	p.proxy = &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     p.transport,
		FlushInterval: -1, // watches
		ErrorLog:      quiet,
	}
	if err := p.Up(); err != nil {
		return nil, err
	}
	return p, nil
}

// URL is where clients connect.
func (p *Proxy) URL() string { return "https://" + p.cfg.Addr }

// Up listens again after Down, on the same address. It does nothing while the proxy listens.
func (p *Proxy) Up() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server != nil {
		return nil
	}
	listener, err := net.Listen("tcp", p.cfg.Addr)
	if err != nil {
		return fmt.Errorf("starting the fault proxy: %w", err)
	}
	server := &http.Server{
		Handler:           p,
		TLSConfig:         &tls.Config{Certificates: []tls.Certificate{p.cfg.Certificate}, MinVersion: tls.VersionTLS12},
		ReadHeaderTimeout: 10 * time.Second,
		ErrorLog:          p.proxy.ErrorLog,
	}
	p.server, p.served = server, make(chan struct{})
	go func(served chan struct{}) {
		defer close(served)
		_ = server.ServeTLS(listener, "", "") // ends with Down, and says no more than that
	}(p.served)
	return nil
}

// Down closes the listener and every connection, as a server that is gone: clients are refused until Up.
func (p *Proxy) Down() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.server == nil {
		return
	}
	_ = p.server.Close()
	<-p.served
	p.server = nil
}

// Stop ends the proxy.
func (p *Proxy) Stop() {
	p.Down()
	p.transport.CloseIdleConnections()
}

// Count is how many requests arrived whose path begins with prefix, with the method (empty: any), also those that a fault met.
func (p *Proxy) Count(method, prefix string) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	total := 0
	for r, n := range p.counts {
		if (method == "" || r.method == method) && strings.HasPrefix(r.path, prefix) {
			total += n
		}
	}
	return total
}

// Observe has f see every request that arrives from now on, before any fault; nil ends that. f must not keep the request, and
// is called by many goroutines.
func (p *Proxy) Observe(f func(*http.Request)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = f
}

// ServeHTTP meets the request with the first fault that fits it, or passes it on.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	seen := p.seen
	p.mu.Unlock()
	if seen != nil {
		seen(r)
	}
	if fault, ok := p.meet(r); ok && fault.serve(w, r) {
		return
	}
	p.proxy.ServeHTTP(w, r)
}

func (p *Proxy) meet(r *http.Request) (Fault, bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts[request{r.Method, r.URL.Path}]++
	for _, f := range p.faults {
		if f.fits(r) {
			return *f, true
		}
	}
	return Fault{}, false
}
