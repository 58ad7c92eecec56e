package feed

import (
	"context"
	"errors"
	"sync"
	"time"

	"hangar.io/glidepath/internal/kubelist"
)

// Source is where a feed reads a cluster.
type Source interface {
	// List gives all objects of a kind in the namespace. It may be as old as
	// what polling callers get, which it is shared with.
	List(ctx context.Context, kind Kind) (*kubelist.List, error)
	// Read gives them as they are now.
	Read(ctx context.Context, kind Kind) (*kubelist.List, error)
	// ReadAt gives them as they were at a version; of names alone, with nothing
	// but their metadata. Neither is of a cache that is known to be wrong.
	ReadAt(ctx context.Context, kind Kind, version string, names bool) (*kubelist.List, error)
	// Latest gives the cluster's resourceVersion now.
	Latest(ctx context.Context, kind Kind) (string, error)
	// Watch watches them.
	Watch(ctx context.Context, kind Kind, from kubelist.WatchFrom) (Watch, error)
}

// Watch is a watch under way: see kubelist.Watch.
type Watch interface {
	Next() (kubelist.Event, error)
	Close()
}

// Config says what a feed is of. All but Log and Resumed is required.
type Config struct {
	// NamespaceUID tells the namespace from others that had its name.
	NamespaceUID string
	Source       Source
	// PollEvery is how often a list is read where the cluster grants no watch.
	PollEvery time.Duration
	// Log is what replicas share of what watches brought.
	Log Log
	// Resumed hears of each viewer that came back: that it was sent what it had
	// missed, out of what is "kept" or of the "past", or the reason of its reset.
	Resumed func(how string)
}

// askAgain is how long a cluster that granted no watch is not asked for one.
const askAgain = 5 * time.Minute

// New gives a feed that is empty until Run has read the namespace.
func New(cfg Config) *Feed { return newFeed(cfg) }

// Run follows the namespace until ctx ends. It returns errBackwards when nothing
// that was seen holds any more, and the viewers must begin anew.
func (f *Feed) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer cancel(nil)
	looking.Go(func() { f.lookForPasts(ctx) })
	ended := make(chan error, kindCount)
	for kind := range kindCount {
		go func() {
			err := f.follow(ctx, kind)
			cancel(err)
			ended <- err
		}()
	}
	var first error
	for range kindCount {
		if err := <-ended; first == nil {
			first = err
		}
	}
	return first
}

// poll reads lists until it is time to ask for a watch again.
func (f *Feed) poll(ctx context.Context, kind Kind) error {
	again := time.NewTimer(askAgain)
	defer again.Stop()
	tick := time.NewTicker(f.cfg.PollEvery)
	defer tick.Stop()
	for {
		if err := f.list(ctx, kind); err != nil && ctx.Err() == nil {
			if errors.Is(err, errBackwards) {
				return err
			}
			f.failed(kind, err)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-again.C:
			return nil
		case <-tick.C:
		}
	}
}

// list takes one list of a kind.
func (f *Feed) list(ctx context.Context, kind Kind) error {
	_, err := f.take(ctx, kind, f.cfg.Source.List)
	if errors.Is(err, errBackwards) {
		// It was kept for others, and is from before what is known. Only a list of
		// now tells what the cluster has.
		_, err = f.take(ctx, kind, f.cfg.Source.Read)
	}
	return err
}

// take takes a list, and gives its version.
func (f *Feed) take(ctx context.Context, kind Kind, read func(context.Context, Kind) (*kubelist.List, error)) (at uint64, err error) {
	l, err := read(ctx, kind)
	if err != nil {
		return 0, err
	}
	if at, err = parseVersion(l.ResourceVersion()); err != nil {
		return 0, err
	}
	all, err := entries(l)
	if err != nil {
		return 0, err
	}
	return at, f.replace(kind, all, at)
}

func entries(l *kubelist.List) ([]entry, error) {
	out := make([]entry, l.Len())
	for i := range out {
		m := l.Meta(i)
		version, err := parseVersion(m.ResourceVersion)
		if err != nil {
			return nil, err
		}
		out[i] = entry{name: m.Name, version: version, json: l.JSON(i)}
	}
	return out, nil
}
