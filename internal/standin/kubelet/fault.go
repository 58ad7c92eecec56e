package kubelet

import (
	"errors"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/standin/loopback"
)

// Fault is what happens to requests for logs that fit it. The zero Fault fits every request and does nothing to it.
type Fault struct {
	Namespace, Pod, Container string // empty fits any
	Skip                      int    // how many requests that fit it leaves alone first
	Times                     int    // how many requests it meets; 0 is any number

	Delay    time.Duration // before the answer begins; ends early when the client gives up
	Status   int           // answers with this status and Body
	Body     string
	Sentence bool          // answers 200 with a sentence about an error, as when the runtime has lost the log
	Slow     time.Duration // before every line
	Cut      int           // cuts the connection after so many bytes of the log; 0 does not
}

// SetFaults replaces the faults. The first one that fits a request meets it.
func (k *Kubelet) SetFaults(faults ...Fault) {
	kept := make([]*Fault, len(faults))
	for i := range faults {
		kept[i] = &faults[i]
		if faults[i].Times == 0 {
			kept[i].Times = -1
		}
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.faults = kept
}

func (k *Kubelet) meet(namespace, pod, container string) Fault {
	fits := func(want, got string) bool { return want == "" || want == got }
	k.mu.Lock()
	defer k.mu.Unlock()
	for _, f := range k.faults {
		if f.Times == 0 || !fits(f.Namespace, namespace) || !fits(f.Pod, pod) || !fits(f.Container, container) {
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

// before reports whether the fault answered.
func (f Fault) before(w http.ResponseWriter, r *http.Request) bool {
	if !loopback.Pause(r.Context(), f.Delay) {
		loopback.Abort()
	}
	if f.Status == 0 {
		return false
	}
	fail(w, f.Status, errors.New(f.Body))
	return true
}
