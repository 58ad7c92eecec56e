// Package tunnel stands in for a forward proxy of a platform: it opens tunnels with CONNECT, to where a test says that a name is,
// and remembers who asked for what.
package tunnel

import (
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"hangar.io/glidepath/internal/standin/loopback"
)

// Config says what the proxy does. The zero value opens every tunnel for everybody, to where it is asked to.
type Config struct {
	// User and Password are wanted of everybody, when set; others are answered 407.
	User, Password string
	// Hosts says where host:port is. What is not in it is connected to as it stands.
	Hosts map[string]string
	// Refuse, when set, is what every CONNECT is answered.
	Refuse int
}

// Proxy is a running proxy. Its methods may be called concurrently.
type Proxy struct {
	Addr string // host:port

	cfg    Config
	server *loopback.Server
	open   sync.WaitGroup // tunnels

	mu      sync.Mutex
	targets []string
	conns   []net.Conn
}

// Start opens the proxy on loopback.
func Start(cfg Config) (*Proxy, error) {
	p := &Proxy{cfg: cfg}
	var err error
	if p.server, err = loopback.Serve(p); err != nil {
		return nil, fmt.Errorf("starting the proxy: %w", err)
	}
	p.Addr = p.server.Addr
	return p, nil
}

// Stop ends the proxy and every tunnel.
func (p *Proxy) Stop() {
	p.server.Stop()
	p.mu.Lock()
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.mu.Unlock()
	p.open.Wait()
}

// Targets are the host:port pairs that were asked for, those refused included.
func (p *Proxy) Targets() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.targets)
}

// ServeHTTP opens one tunnel.
func (p *Proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "this proxy only opens tunnels", http.StatusMethodNotAllowed)
		return
	}
	p.mu.Lock()
	p.targets = append(p.targets, r.Host)
	p.mu.Unlock()
	if p.cfg.Refuse != 0 {
		w.WriteHeader(p.cfg.Refuse)
		return
	}
	if p.cfg.User != "" {
		want := "Basic " + base64.StdEncoding.EncodeToString([]byte(p.cfg.User+":"+p.cfg.Password))
		if r.Header.Get("Proxy-Authorization") != want {
			w.Header().Set("Proxy-Authenticate", `Basic realm="test"`)
			w.WriteHeader(http.StatusProxyAuthRequired)
			return
		}
	}
	to := r.Host
	if there, ok := p.cfg.Hosts[r.Host]; ok {
		to = there
	}
	dialer := net.Dialer{Timeout: 10 * time.Second}
	behind, err := dialer.DialContext(r.Context(), "tcp", to)
	if err != nil {
		w.WriteHeader(http.StatusBadGateway)
		return
	}
	// The answer is written after the server let go of the connection: with it
	// the client begins to speak, and the server would keep what it reads.
	front, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = behind.Close()
		return
	}
	if _, err := io.WriteString(front, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_, _ = front.Close(), behind.Close()
		return
	}
	p.pass(front, behind)
}

// pass copies both ways until both ends are done.
func (p *Proxy) pass(front, behind net.Conn) {
	p.mu.Lock()
	p.conns = append(p.conns, front, behind)
	p.mu.Unlock()
	for _, way := range [][2]net.Conn{{front, behind}, {behind, front}} {
		p.open.Go(func() {
			_, _ = io.Copy(way[0], way[1])
			_ = way[0].Close()
			_ = way[1].Close()
		})
	}
}
