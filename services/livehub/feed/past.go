package feed

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"hangar.io/glidepath/internal/cache"
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
	// pastTries is how often a viewer has a past looked for.
	pastTries = 2
	// pastKept is how long a past that is complete is kept for further viewers.
	pastKept = 30 * time.Second
)

// Log is what replicas share of what happened lately: see cache.Journal.
type Log interface {
	// Append has a change kept. It does not wait.
	Append(kind Kind, e cache.Entry)
	// Read gives the changes of a kind after a version, without a gap.
	Read(ctx context.Context, kind Kind, after uint64) ([]cache.Entry, error)
}

// past is what happened before what a feed keeps: out of the log, and where that
// ends by a watch from there. Viewers who come back at about the same time share
// one, and follow it while it is filled.
type past struct {
	// from and until are where it begins and ends. What was known at from is what
	// a viewer says, and true of none but that.
	from, until Position

	mu      sync.Mutex
	changes []*change // of each kind in its order
	bytes   int
	reached [kindCount]uint64
	proven  [kindCount]bool // it is known what there was at from
	over    bool
	err     error         // why it is not complete
	moved   chan struct{} // closed when any of this changes
}

func newPast(from, until Position) *past {
	p := &past{from: from, until: until, moved: make(chan struct{})}
	for kind := range kindCount {
		p.reached[kind] = from[kind].Version
	}
	return p
}

// after gives the changes from a number on, and whether there will be no more,
// or a channel that is closed once there may be.
func (p *past) after(n int) (changes []*change, over bool, moved <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.changes[n:len(p.changes):len(p.changes)], p.over, p.moved
}

// end is where a past has come to, and why it is not complete.
func (p *past) end() (reached [kindCount]uint64, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reached, p.err
}

func (p *past) tell() {
	close(p.moved)
	p.moved = make(chan struct{})
}

var (
	errPastTooLong = errors.New("too much has happened since")
	errPastDiffers = errors.New("what replicas share is not what the cluster had")
)

// add appends a change of a kind, which was known as of one place before, and is
// as of another after it.
func (p *past) add(kind Kind, was uint64, is Place, body []byte) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &change{kind: kind, version: is.Version, was: was, is: is.Sum, frame: body}
	if len(p.changes) == pastCount || p.bytes+sizeOf(c) > pastBytes {
		return errPastTooLong
	}
	p.changes = append(p.changes, c)
	p.bytes += sizeOf(c)
	p.reached[kind] = is.Version
	p.tell()
	return nil
}

// pass notes that nothing of a kind happened up to a version.
func (p *past) pass(kind Kind, version uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.reached[kind] = max(p.reached[kind], version)
}

// prove notes that somebody could tell what there was of a kind at from.
func (p *past) prove(kind Kind) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.proven[kind] = true
}

// holds says whether somebody could tell what there was at from.
func (p *past) holds() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.proven[PipelineRuns] && p.proven[TaskRuns]
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
	for kind, version := range p.reached {
		if p.over && version < floor[kind].Version {
			return false
		}
	}
	return p.err == nil
}

// pastFor gives what happened since a viewer left, or nil where it is not looked
// for. One that others wanted is given if it goes back far enough, but not to
// whom it has failed once: then it has to be known that it holds.
func (f *Feed) pastFor(v *Viewer, failed bool) *past {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept, _ := f.topic.Kept()
	floor := f.floor(kept)
	from := v.since(floor)
	if b := f.back; b != nil && b.leadsTo(floor) && (!failed || b.from == from || b.holds()) {
		if from.covers(b.from) {
			v.own = b.from == from
			return b
		}
		// Viewers come in no order: each past goes further back than those
		// before it, so that there are few.
		from = from.earlier(b.from)
	}
	// Version 0 is none: a watch from there would tell what there is and not what
	// happened.
	if f.ended || f.pasts == maxPasts || from[PipelineRuns].Version == 0 || from[TaskRuns].Version == 0 {
		return nil
	}
	p := newPast(from, floor)
	f.back, f.pasts = p, f.pasts+1
	f.wanted <- p // it has room for all there may be
	v.own = from == v.since(floor)
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
func (f *Feed) lookFor(ctx context.Context, p *past, kind Kind) error {
	l := look{past: p, kind: kind, seen: p.from[kind]}
	if l.arrived() {
		p.prove(kind)
		return nil
	}
	if f.cfg.Log != nil {
		entries, err := f.cfg.Log.Read(ctx, kind, l.seen.Version)
		if err != nil {
			entries = nil // Redis may be away; there is the watch
		}
		if err := l.read(entries); err != nil || l.arrived() {
			return err
		}
	}
	for !l.arrived() {
		began := time.Now()
		err := l.watch(ctx, f.cfg.Source)
		switch {
		case ctx.Err() != nil:
			return fmt.Errorf("looking for what happened to %ss: %w", kindNames[kind], ctx.Err())
		case refused(err), errors.Is(err, errPastTooLong), errors.Is(err, errPastDiffers):
			return fmt.Errorf("looking for what happened to %ss: %w", kindNames[kind], err)
		case err == nil, errors.Is(err, io.EOF) && time.Since(began) > pastPause:
			continue
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
