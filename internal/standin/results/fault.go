package results

import (
	"maps"
	"net/http"
	"strings"
	"time"

	"hangar.io/glidepath/internal/standin/loopback"
)

// Fault is what happens to requests that fit it. The zero Fault fits every request
// and does nothing to it.
type Fault struct {
	Path  string // a part of the path or of the query; empty fits any
	Skip  int    // how many requests that fit it leaves alone first
	Times int    // how many requests it meets; 0 is any number

	Before func()        // is called before the answer is made: to change what is stored
	Delay  time.Duration // before the answer begins; ends early when the client gives up
	Status int           // answers with this status, Header and Body
	Header http.Header
	Body   string
	Empty  bool // a list is answered with 200 and nothing, as when its SQL failed
	// Unfiltered has a list hold what its filter does not select.
	Unfiltered bool
	Loop       string // a list names this token as that of the next page, and is its first page whatever page is asked for
	Cut        int    // cuts the connection after so many bytes of the answer; 0 does not
	Hang       int    // sends so many bytes of the answer and then nothing, until the client gives up; 0 does not
	Append     string // comes behind a log
}

// SetFaults replaces the faults. The first one that fits a request meets it.
func (s *Server) SetFaults(faults ...Fault) {
	kept := make([]*Fault, len(faults))
	for i := range faults {
		kept[i] = &faults[i]
		if faults[i].Times == 0 {
			kept[i].Times = -1
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = kept
}

func (s *Server) meet(r Request) Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, f := range s.faults {
		if f.Times == 0 || !strings.Contains(r.URI, f.Path) {
			continue
		}
		if f.Skip > 0 {
			f.Skip--
			return Fault{}
		}
		if f.Times > 0 {
			f.Times--
		}
		return *f
	}
	return Fault{}
}

// before does what comes before an answer, and reports whether that was all.
func (f Fault) before(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, bool) {
	if f.Before != nil {
		f.Before()
	}
	if f.Delay > 0 && !loopback.Pause(r.Context(), f.Delay) {
		loopback.Abort()
	}
	if f.Status != 0 {
		w.Header().Set("Content-Type", "text/html")
		maps.Copy(w.Header(), f.Header)
		w.WriteHeader(f.Status)
		_, _ = w.Write([]byte(f.Body)) // a client that left reads nothing
		return w, true
	}
	if f.Cut > 0 || f.Hang > 0 {
		return &broken{ResponseWriter: w, left: max(f.Cut, f.Hang), hang: f.Hang > 0, gone: r.Context().Done()}, false
	}
	return w, false
}

// broken is an answer that stops in the middle.
type broken struct {
	http.ResponseWriter

	left int
	hang bool
	gone <-chan struct{}
}

// Write sends what may be sent.
func (b *broken) Write(p []byte) (int, error) {
	n := min(len(p), b.left)
	b.left -= n
	if _, err := b.ResponseWriter.Write(p[:n]); err != nil || n == len(p) {
		return n, err
	}
	if err := http.NewResponseController(b.ResponseWriter).Flush(); err != nil {
		return n, err
	}
	if b.hang {
		<-b.gone
	}
	loopback.Abort()
	return n, nil
}
