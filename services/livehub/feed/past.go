package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/watch"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/kubelist"
)

const (
	// pastTime bounds how long a past is looked for. Viewers are not kept
	// waiting for its end: they are sent what there is.
	pastTime = 15 * time.Second
	// pastWatch is for how long the API server is asked to watch for a past. It
	// sends a bookmark two seconds before the end, which tells that there is
	// nothing more.
	pastWatch = 4 * time.Second
	// pastPause is how long is waited before a watch that broke is tried again.
	pastPause = 500 * time.Millisecond
	// pastCount and pastBytes bound what a past may have.
	pastCount, pastBytes = 8192, 32 << 20
	// maxPasts is how many are looked for at once for one namespace.
	maxPasts = 4
	// pastKept is how long a past that is complete is kept for further viewers.
	pastKept = 30 * time.Second
)

// Log is what replicas share of what happened lately: see cache.Journal.
type Log interface {
	// Append has a change kept. It does not wait.
	Append(kind Index, e cache.Entry)
	// Read gives the changes of a kind after a version, without a gap.
	Read(ctx context.Context, kind Index, after uint64) ([]cache.Entry, error)
}

// past is what happened before what a feed keeps: out of the log, and where that
// ends by a watch from there. Viewers who come back at about the same time share
// one, and follow it while it is filled.
type past struct {
	from, until Position

	mu      sync.Mutex
	changes []*change // of each kind in its order
	bytes   int
	reached Position
	over    bool
	err     error         // why it is not complete
	moved   chan struct{} // closed when any of this changes
}

func newPast(from, until Position) *past {
	return &past{from: from, until: until, reached: from, moved: make(chan struct{})}
}

// after gives the changes from a number on, and whether there will be no more,
// or a channel that is closed once there may be.
func (p *past) after(n int) (changes []*change, over bool, moved <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes[n:len(p.changes):len(p.changes)], p.over, p.moved
}

// end is where a past has come to, and why it is not complete.
func (p *past) end() (Position, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reached, p.err
}

func (p *past) tell() {
	close(p.moved)
	p.moved = make(chan struct{})
}

var errPastTooLong = errors.New("too much has happened since")

// add appends a change; one without a body says that there was none up to its
// version.
func (p *past) add(kind Index, version uint64, body []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if version <= p.reached[kind] {
		return nil
	}
	if len(body) > 0 {
		c := &change{kind: kind, version: version, frame: body}
		if len(p.changes) == pastCount || p.bytes+sizeOf(c) > pastBytes {
			return errPastTooLong
		}
		p.changes = append(p.changes, c)
		p.bytes += sizeOf(c)
	}
	p.reached[kind] = version
	p.tell()
	return nil
}

func (p *past) finish(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over, p.err = true, err
	p.tell()
}

// leadsTo says whether what the feed keeps from floor on follows it.
func (p *past) leadsTo(floor Position) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err == nil && (!p.over || p.reached.covers(floor))
}

// pastFor gives what happened from a position on, or nil where it is not looked
// for.
func (f *Feed) pastFor(at Position) *past {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept, _ := f.topic.Kept()
	floor, from := f.floor(kept), at
	if b := f.back; b != nil && b.leadsTo(floor) {
		if at.covers(b.from) {
			return b
		}
		// Viewers come in no order: each past goes further back than those
		// before it, so that there are few.
		from = Position{min(at[PipelineRuns], b.from[PipelineRuns]), min(at[TaskRuns], b.from[TaskRuns])}
	}
	// Version 0 is none: a watch from there would tell what there is and not what
	// happened.
	if f.ended || f.pasts == maxPasts || from[PipelineRuns] == 0 || from[TaskRuns] == 0 {
		return nil
	}
	p := newPast(from, floor)
	f.back, f.pasts = p, f.pasts+1
	f.wanted <- p // it has room for all there may be
	return p
}

// lookForPasts fills the pasts that are wanted until ctx ends.
func (f *Feed) lookForPasts(ctx context.Context) {
	var all sync.WaitGroup
	defer all.Wait()
	for {
		select {
		case p := <-f.wanted:
			all.Go(func() { f.look(ctx, p) })
			continue
		case <-ctx.Done():
		}
		break
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = true
	for len(f.wanted) > 0 {
		(<-f.wanted).finish(ctx.Err())
	}
}

// look fills a past.
func (f *Feed) look(ctx context.Context, p *past) {
	ctx, cancel := context.WithTimeout(ctx, pastTime)
	defer cancel()
	var faults [kindCount]error
	var both sync.WaitGroup
	for kind := range kindCount {
		both.Go(func() {
			if faults[kind] = f.lookFor(ctx, p, kind); faults[kind] != nil {
				cancel() // half of it is of no use
			}
		})
	}
	both.Wait()
	p.finish(errors.Join(faults[:]...))
	f.mu.Lock()
	f.pasts--
	f.mu.Unlock()
	time.AfterFunc(pastKept, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if f.back == p {
			f.back = nil
		}
	})
}

// lookFor fills a past with the changes of a kind.
func (f *Feed) lookFor(ctx context.Context, p *past, kind Index) error {
	at := p.from[kind]
	if f.cfg.Log != nil && at < p.until[kind] {
		entries, err := f.cfg.Log.Read(ctx, kind, at)
		if err != nil {
			entries = nil // Redis may be away; there is the watch
		}
		for _, e := range entries {
			if e.At > p.until[kind] {
				// The rest is for the feed to tell: that is of its own cluster, whatever
				// happened to what the log is of.
				e = cache.Entry{At: p.until[kind]}
			}
			if err := p.add(kind, e.At, e.Body); err != nil {
				return err
			}
			if at = e.At; at == p.until[kind] {
				break
			}
		}
	}
	for at < p.until[kind] {
		err := f.pastByWatch(ctx, p, kind, &at)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("looking for what happened to %ss: %w", kindNames[kind], ctx.Err())
		case err == nil, errors.Is(err, io.EOF):
			continue
		case refused(err), errors.Is(err, errPastTooLong):
			return fmt.Errorf("looking for what happened to %ss: %w", kindNames[kind], err)
		}
		wait := time.NewTimer(pastPause)
		select {
		case <-ctx.Done():
		case <-wait.C:
		}
		wait.Stop()
	}
	return nil
}

// refused says whether the API server will not tell, however often it is asked:
// the version is too old for it, or it grants no watch.
func refused(err error) bool {
	return apierrors.IsResourceExpired(err) || apierrors.IsGone(err) || apierrors.IsForbidden(err) ||
		apierrors.IsBadRequest(err) || apierrors.IsInvalid(err)
}

// pastByWatch fills a past by one watch, until it has reached what the feed
// keeps.
func (f *Feed) pastByWatch(ctx context.Context, p *past, kind Index, at *uint64) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	one, err := f.cfg.Source.Watch(ctx, kind, kubelist.WatchFrom{ResourceVersion: strconv.FormatUint(*at, 10), Timeout: pastWatch})
	if err != nil {
		return err
	}
	defer one.Close()
	for *at < p.until[kind] {
		e, err := one.Next()
		if err != nil {
			return err
		}
		version, err := parseVersion(e.ResourceVersion)
		if err != nil {
			return err
		}
		var body []byte
		switch e.Type {
		case watch.Bookmark:
		case watch.Deleted:
			body, err = writeBody(kind, e.Name, nil)
		default:
			body, err = writeBody(kind, e.Name, e.JSON)
		}
		if err == nil {
			err = p.add(kind, version, body)
		}
		if err != nil {
			return err
		}
		*at = max(*at, version)
	}
	return nil
}
