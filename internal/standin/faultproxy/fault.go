package faultproxy

import (
	"io"
	"maps"
	"net/http"
	"strings"
	"time"

	"hangar.io/glidepath/internal/standin/loopback"
)

// Fault is what happens to requests that fit it. The zero Fault fits every request and passes it on.
type Fault struct {
	Method string // empty fits any
	Path   string // a prefix of the path; empty fits any
	Times  int    // how many requests it meets; 0 is any number

	Delay  time.Duration // before anything else; ends early when the client gives up
	Status int           // answers with this status, Header and Body instead of asking the server
	Header http.Header
	Body   string
	Abort  bool // cuts the connection (or HTTP/2 stream): after Body when there is a Status, else with no answer at all
}

// Set replaces the faults. The first one that fits a request meets it.
func (p *Proxy) Set(faults ...Fault) {
	kept := make([]*Fault, len(faults))
	for i := range faults {
		kept[i] = &faults[i]
		if faults[i].Times == 0 {
			kept[i].Times = -1
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.faults = kept
}

// Clear removes all faults. Requests that are being delayed go on being delayed.
func (p *Proxy) Clear() { p.Set() }

func (f *Fault) fits(r *http.Request) bool {
	if f.Times == 0 || (f.Method != "" && f.Method != r.Method) || !strings.HasPrefix(r.URL.Path, f.Path) {
		return false
	}
	if f.Times > 0 {
		f.Times--
	}
	return true
}

// serve returns false when the request is still to be passed on.
func (f *Fault) serve(w http.ResponseWriter, r *http.Request) bool {
	if f.Delay > 0 && !loopback.Pause(r.Context(), f.Delay) {
		loopback.Abort()
	}
	if f.Status != 0 {
		maps.Copy(w.Header(), f.Header)
		w.WriteHeader(f.Status)
		_, _ = io.WriteString(w, f.Body) // a client that left needs no answer
		if f.Abort {
			_ = http.NewResponseController(w).Flush()
		}
	}
	if f.Abort {
		loopback.Abort()
	}
	return f.Status != 0
}
