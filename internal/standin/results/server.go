// Package results is a Tekton Results API server in memory: it answers reads over
// REST as the real one does, with its statuses, its words and its bad habits, and
// on demand slower, shorter or wrong. Filters are CEL, checked by the library that
// the real one has, and mean what the SQL means that the real one makes of them.
//
// It also stands in for the relay in front of it, as that passes everything on.
package results

import (
	"fmt"
	"net/http"
	"sync"

	"hangar.io/glidepath/internal/standin/loopback"
)

// LogStore is how a server keeps logs.
type LogStore int

// Ways to keep logs.
const (
	// StoredLogs are kept by Results itself.
	StoredLogs LogStore = iota
	// NoLogs is Results as it is shipped: it serves no log.
	NoLogs
	// PluginLogs are kept by a service that Results asks.
	PluginLogs
)

// Config is how a server answers. The zero Config is usable.
type Config struct {
	// Addr is host:port; empty is a free port on loopback.
	Addr string
	// Token is what callers must send. Empty: everybody may read.
	Token string
	// Logs is how logs are kept.
	Logs LogStore
	// MaxAnswer is how many bytes of values a page may have. Zero: 100 MiB, what
	// gRPC carries.
	MaxAnswer int
	// OldDialect has the server write as releases before v0.15 did: in camelCase,
	// with what is empty.
	OldDialect bool
}

// Server is a running server. All methods may be called concurrently.
type Server struct {
	*loopback.Server

	cfg     Config
	filters filters

	store store

	mu       sync.Mutex
	faults   []*Fault
	requests []Request
}

// Start serves until Stop, at first with nothing stored.
func Start(cfg Config) (*Server, error) {
	if cfg.MaxAnswer == 0 {
		cfg.MaxAnswer = 100 << 20
	}
	s := &Server{cfg: cfg, store: newStore()}
	var err error
	if s.filters, err = newFilters(); err != nil {
		return nil, fmt.Errorf("starting Tekton Results: %w", err)
	}
	if s.Server, err = loopback.ServeAt(cfg.Addr, s); err != nil {
		return nil, fmt.Errorf("starting Tekton Results: %w", err)
	}
	return s, nil
}

// URL is what clients are given.
func (s *Server) URL() string { return "http://" + s.Addr }

const maxRequests = 10_000 // older ones are forgotten

// Request is one request as it arrived.
type Request struct {
	// URI is path and query, undecoded.
	URI string
	// Parent, Kind and Filter are what was asked for: the namespace or "-", one of
	// results, records, logs, summary, and the filter of a list.
	Parent, Kind, Filter string
	// Header is what came with it.
	Header http.Header
}

// Requests gives what arrived since the start or the last Reset, oldest first.
func (s *Server) Requests() []Request {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]Request(nil), s.requests...)
}

// Reset forgets the requests.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = nil
}

func (s *Server) remember(r Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.requests) >= maxRequests {
		s.requests = append([]Request(nil), s.requests[maxRequests/2:]...)
	}
	s.requests = append(s.requests, r)
}
