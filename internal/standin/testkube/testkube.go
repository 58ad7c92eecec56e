// Package testkube is a stand-in for the API server of Testkube: the part of its REST that reads executions of test workflows
// and their artifacts, with its odd corners. It lists by pages without a token, leaves zeros out, gives times that are not set
// as year 1, wants an artifact's name in one segment that it unescapes twice, and answers 500 for an artifact that is not there.
package testkube

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"hangar.io/glidepath/internal/standin/loopback"
)

// Execution is one run of a test workflow. Its zero times are not set.
type Execution struct {
	ID, Name, Workflow string
	Status             string
	Scheduled          time.Time
	Started, Finished  time.Time
	Initialization     string // status of the step before the first, "passed" when empty
	Steps              []Step
	Labels             map[string]string // of the workflow
	Tags               map[string]string
	Artifacts          map[string][]byte // by path
	Reports            []string          // those of the artifacts that are taken for JUnit
}

// Step is one step of an execution.
type Step struct{ Ref, Status string }

// Part is what a request is about.
type Part string

// The parts that are served.
const (
	List      Part = "list"
	Detail    Part = "detail"
	Artifacts Part = "artifacts"
	Download  Part = "download"
)

// Fault answers a request in place of the stand-in, or does not and says false.
type Fault func(w http.ResponseWriter, r *http.Request) bool

// Server is a running stand-in. All methods may be called concurrently.
type Server struct {
	*loopback.Server // its Addr is host:port; nil unless started

	mux http.Handler

	mu         sync.Mutex
	executions []Execution
	faults     map[Part]Fault
	requests   []string // undecoded path and query
	running    map[Part]int
	peak       map[Part]int
}

// maxRequests bounds what is remembered; older requests are forgotten.
const maxRequests = 10_000

// New makes a stand-in without executions, to be served by somebody else.
func New() *Server {
	s := &Server{faults: map[Part]Fault{}, running: map[Part]int{}, peak: map[Part]int{}}
	s.mux = s.routes()
	return s
}

// Start listens on a port of its own on loopback until Stop.
func Start() (*Server, error) {
	s := New()
	var err error
	if s.Server, err = loopback.Serve(s); err != nil {
		return nil, fmt.Errorf("starting the stand-in of Testkube: %w", err)
	}
	return s, nil
}

// URL gives where it is reached.
func (s *Server) URL() string { return "http://" + s.Addr }

// Put adds executions, or replaces those of the same id.
func (s *Server) Put(executions ...Execution) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range executions {
		if i := slices.IndexFunc(s.executions, func(x Execution) bool { return x.ID == e.ID }); i >= 0 {
			s.executions[i] = e
			continue
		}
		s.executions = append(s.executions, e)
	}
}

// On has a fault before each answer about the part; nil has none.
func (s *Server) On(part Part, f Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults[part] = f
}

// Requests gives what was asked for since the start or the last Reset, path and query undecoded, oldest first.
func (s *Server) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Peak gives how many requests about the part were answered at once at most.
func (s *Server) Peak(part Part) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.peak[part]
}

// Running gives how many requests about the part are being answered.
func (s *Server) Running(part Part) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.running[part]
}

// Reset forgets requests and peaks.
func (s *Server) Reset() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests, s.peak = nil, map[Part]int{}
}

// ServeHTTP answers as Testkube would.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	if len(s.requests) == maxRequests {
		s.requests = s.requests[1:]
	}
	s.requests = append(s.requests, r.RequestURI)
	s.mu.Unlock()
	s.mux.ServeHTTP(w, r)
}

// about counts the requests of a part and has its fault go first.
func (s *Server) about(part Part, h http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.mu.Lock()
		s.running[part]++
		s.peak[part] = max(s.peak[part], s.running[part])
		fault := s.faults[part]
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			s.running[part]--
			s.mu.Unlock()
		}()
		if fault != nil && fault(w, r) {
			return
		}
		h(w, r)
	}
}

// newest gives the executions as Testkube lists them.
func (s *Server) newest(keep func(Execution) bool) []Execution {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []Execution
	for _, e := range s.executions {
		if keep(e) {
			found = append(found, e)
		}
	}
	slices.SortStableFunc(found, func(a, b Execution) int { return b.Scheduled.Compare(a.Scheduled) })
	return found
}

// find looks for an id first and for a name then.
func (s *Server) find(idOrName string) (Execution, bool) {
	for _, same := range []func(Execution) bool{
		func(e Execution) bool { return e.ID == idOrName },
		func(e Execution) bool { return e.Name == idOrName },
	} {
		if found := s.newest(same); len(found) > 0 {
			return found[0], true
		}
	}
	return Execution{}, false
}

// tagged reads a tagSelector: keys are all wanted, values of one key any, a bare key whatever its value.
func tagged(selector string) func(Execution) bool {
	wanted := map[string][]string{}
	for member := range strings.SplitSeq(selector, ",") {
		key, value, _ := strings.Cut(member, "=")
		if key != "" {
			wanted[key] = append(wanted[key], value)
		}
	}
	return func(e Execution) bool {
		for key, values := range wanted {
			got, ok := e.Tags[key]
			if !ok || (!slices.Contains(values, got) && !slices.Contains(values, "")) {
				return false
			}
		}
		return true
	}
}
