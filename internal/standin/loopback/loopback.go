// Package loopback serves a stand-in over HTTP, on a port of its own on
// loopback.
package loopback

import (
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// Server is a stand-in that is being served.
type Server struct {
	// Addr is host:port.
	Addr string

	server *http.Server
	served chan struct{}
}

// Serve serves h until Stop. What goes wrong in a connection is nobody's news:
// stand-ins break them on purpose.
func Serve(h http.Handler) (*Server, error) { return ServeAt("", h) }

// ServeAt is Serve at an address, host:port; empty is a free port on loopback.
func ServeAt(addr string, h http.Handler) (*Server, error) {
	if addr == "" {
		addr = "127.0.0.1:0"
	}
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("serving on loopback: %w", err)
	}
	s := &Server{
		Addr:   l.Addr().String(),
		server: &http.Server{Handler: h, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(slog.DiscardHandler, slog.LevelError)},
		served: make(chan struct{}),
	}
	go func() {
		defer close(s.served)
		_ = s.server.Serve(l) // ends with Stop, and says no more than that
	}()
	return s, nil
}

// Stop closes the listener and all connections but those that a handler took
// over.
func (s *Server) Stop() {
	_ = s.server.Close()
	<-s.served
}
