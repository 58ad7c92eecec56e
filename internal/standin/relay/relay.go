// Package relay stands between two TCP peers, passes bytes both ways, and on demand drops what it gets without telling either
// of them: to each the other is there and silent, as over a network that was cut.
package relay

import (
	"context"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

const dialTimeout = 5 * time.Second

// Relay passes connections on. It starts whole. All methods may be called concurrently.
type Relay struct {
	Addr string // host:port where it listens

	target   string
	listener net.Listener
	pipes    sync.WaitGroup

	mu    sync.Mutex
	cut   bool
	done  bool
	conns map[net.Conn]struct{}
}

// Start listens on addr and passes what connects there on to target until Stop.
func Start(addr, target string) (*Relay, error) {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("starting a relay: %w", err)
	}
	r := &Relay{Addr: listener.Addr().String(), target: target, listener: listener, conns: map[net.Conn]struct{}{}}
	r.pipes.Go(r.accept)
	return r, nil
}

// Cut drops what arrives from now on, on connections that are open and on new ones, which are accepted.
func (r *Relay) Cut() { r.set(true) }

// Mend passes bytes on again. A connection that has lost some is closed: TCP would have sent them again or given up, and never
// gone on without them.
func (r *Relay) Mend() { r.set(false) }

func (r *Relay) set(cut bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.cut && !cut {
		r.closeAll()
	}
	r.cut = cut
}

// Stop closes the listener and every connection, and returns when nothing of the relay runs.
func (r *Relay) Stop() {
	_ = r.listener.Close()
	r.mu.Lock()
	r.done = true
	r.closeAll()
	r.mu.Unlock()
	r.pipes.Wait()
}

func (r *Relay) closeAll() {
	for c := range r.conns {
		_ = c.Close()
		delete(r.conns, c)
	}
}

func (r *Relay) accept() {
	for {
		from, err := r.listener.Accept()
		if err != nil {
			return // stopped
		}
		r.pipes.Go(func() { r.serve(from) })
	}
}

func (r *Relay) serve(from net.Conn) {
	if !r.own(from) {
		return
	}
	defer r.disown(from)
	if r.isCut() {
		_, _ = io.Copy(io.Discard, from) // until the peer gives up, or Mend
		return
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	to, err := dialer.DialContext(context.Background(), "tcp", r.target)
	if err != nil || !r.own(to) {
		return // the peer sees a connection that is closed
	}
	defer r.disown(to)
	var both sync.WaitGroup
	for _, way := range [][2]net.Conn{{from, to}, {to, from}} {
		both.Go(func() { r.pass(way[0], way[1]) })
	}
	both.Wait()
}

// pass copies one direction. Its end ends the connection as a whole: no peer of ours goes on with one half.
func (r *Relay) pass(from, to net.Conn) {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && !r.isCut() {
			if _, err := to.Write(buffer[:n]); err != nil {
				break
			}
		}
		if err != nil {
			break
		}
	}
	if !r.isCut() {
		_ = from.Close()
		_ = to.Close()
	}
}

func (r *Relay) isCut() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cut
}

// own keeps a connection for Cut and Stop, or closes it if the relay has stopped.
func (r *Relay) own(c net.Conn) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.done {
		_ = c.Close()
		return false
	}
	r.conns[c] = struct{}{}
	return true
}

func (r *Relay) disown(c net.Conn) {
	_ = c.Close()
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.conns, c)
}
