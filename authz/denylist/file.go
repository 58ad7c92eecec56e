package denylist

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/internal/filewatch"
	"hangar.io/glidepath/internal/problem"
)

// File is a list that follows its file. It is safe for concurrent use.
type File struct {
	name    string
	watch   *filewatch.Watcher // nil without a file
	current atomic.Pointer[List]
	stale   atomic.Bool

	mu      sync.Mutex
	changed chan struct{} // closed and made anew with each change
	fault   string        // the last that was logged
}

// Open reads the list of a file, which must be there and good: a process that
// was told to deny must not start denying nobody. Run follows it. An empty name
// is a list of nobody. Close it when done.
func Open(name string) (*File, error) {
	f := &File{name: name, changed: make(chan struct{})}
	if name == "" {
		f.current.Store(&List{epoch: "none"})
		return f, nil
	}
	var err error
	// The watch first, so that no change in between is missed.
	if f.watch, err = filewatch.Watch(name, MaxBytes); err != nil {
		return nil, fmt.Errorf("reading the deny-list: %w", err)
	}
	list, err := f.read()
	if err != nil {
		return nil, errors.Join(fmt.Errorf("reading the deny-list: %w", err), f.watch.Close())
	}
	f.current.Store(list)
	return f, nil
}

func (f *File) read() (*List, error) {
	data, err := f.watch.Read()
	if err != nil {
		return nil, err
	}
	return Parse(f.name, data)
}

// Close ends the watch.
func (f *File) Close() error {
	if f.watch == nil {
		return nil
	}
	return f.watch.Close()
}

// Run follows the file until ctx ends. A file that is bad or gone changes
// nothing: the last good list stays, and it is logged and counted.
func (f *File) Run(ctx context.Context) error {
	if f.watch == nil {
		return nil
	}
	return f.watch.Run(ctx, func() { f.reload(ctx) })
}

func (f *File) reload(ctx context.Context) {
	list, err := f.read()
	f.stale.Store(err != nil)
	f.mu.Lock()
	defer f.mu.Unlock()
	if err != nil {
		if text := err.Error(); text != f.fault {
			f.fault = text
			slog.ErrorContext(ctx, "the deny-list cannot be read, the last good one stays", "error", err)
		}
		return
	}
	f.fault = ""
	if list.epoch == f.current.Load().epoch {
		return
	}
	f.current.Store(list)
	close(f.changed)
	f.changed = make(chan struct{})
	slog.InfoContext(ctx, "the deny-list is in force", "entries", list.Len(), "epoch", list.epoch)
}

// Epoch stands for the list in force: the same list has the same one in every
// authz. changed is closed when it is another.
func (f *File) Epoch() (epoch string, changed <-chan struct{}) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.current.Load().epoch, f.changed
}

// Check returns GP-AUTH-006 when a caller is denied, or the person on whose
// behalf it calls. The entry's reason is in the error's cause alone.
func (f *File) Check(c *authn.Caller, onBehalfOf string) error {
	list := f.current.Load()
	if list.Len() == 0 {
		return nil
	}
	e, denied := list.Denies(c, onBehalfOf, time.Now())
	if !denied {
		return nil
	}
	// The operator's own words go here and into the span, never to the caller.
	slog.Warn("call denied by list", "rule", problem.AuthDenied.ID, "caller", c.Username, "onBehalfOf", onBehalfOf,
		"entry", string(e.Kind)+" "+e.Name, "reason", e.Reason)
	return e.Refusal(onBehalfOf)
}

// MustRegister adds the list's metrics.
func (f *File) MustRegister(reg prometheus.Registerer) {
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "glidepath_authz_denylist_entries", Help: "Entries of the deny-list in force.",
		}, func() float64 { return float64(f.current.Load().Len()) }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "glidepath_authz_denylist_stale", Help: "1 while the file of the deny-list cannot be read and an older one is in force.",
		}, func() float64 {
			if f.stale.Load() {
				return 1
			}
			return 0
		}),
	)
}
