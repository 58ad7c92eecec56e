package feed

import (
	"context"
	"errors"
	"fmt"
	"time"

	"hangar.io/glidepath/internal/sse"
)

// Bounds say how a viewer is sent what happens: see sse.Follower.
type Bounds struct {
	Behind int
	Every  time.Duration
}

// Follow sends a viewer what happens from its place on, until ctx ends, with its
// cause, the viewer falls behind, with sse.ErrLagged, or the stream breaks. What
// happened before the viewer came is never what it is behind by.
func (v *Viewer) Follow(ctx context.Context, s *sse.Stream, b Bounds) error {
	if v.past != nil {
		if err := v.catchUp(ctx, s); err != nil {
			return err
		}
	}
	return v.follower(b).Follow(ctx, s)
}

// follower gives how a stream follows what the feed keeps for this viewer.
func (v *Viewer) follower(b Bounds) sse.Follower[*change] {
	return sse.Follower[*change]{
		Topic: v.feed.topic, Cursor: v.cursor, Frame: v.frame, Ping: v.ping, Behind: b.Behind, Every: b.Every,
	}
}

// catchUp sends what happened before what the feed keeps, while it is found, and
// everything anew when it is not. It takes little longer than that is looked
// for, and so sends no comments.
func (v *Viewer) catchUp(ctx context.Context, s *sse.Stream) error {
	f, how := v.feed, isTooOld
	defer func() { v.past = nil }() // it may be large
	for range pastTries {
		var err error
		if how, err = v.replay(ctx, s); err != nil {
			return err
		}
		if how == goesOn {
			f.resumed(byPast)
			return nil
		}
		if how == contradicts || !f.lookAgain(v) {
			break
		}
	}
	reason := ResetExpired
	if how == contradicts {
		reason = ResetDiffers
	}
	f.resumed(string(reason))
	again, err := f.fresh(reason)
	if err != nil {
		return fmt.Errorf("beginning anew: %w", err)
	}
	first := again.First()
	*v = *again
	return s.Send(first...)
}

// replay sends a viewer its past, and says how it goes on from there.
func (v *Viewer) replay(ctx context.Context, s *sse.Stream) (standing, error) {
	for next := 0; ; {
		changes, over, moved := v.past.after(next)
		next += len(changes)
		frames, fits := v.framesOf(changes)
		if len(frames) > 0 {
			if err := s.Send(frames...); err != nil {
				return 0, err
			}
		}
		switch {
		case !fits:
			return contradicts, nil
		case len(changes) > 0:
			continue
		case over:
			return v.leavePast(), nil
		}
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-moved:
		}
	}
}

// framesOf gives the bytes of what the viewer has not seen of a past. Fits is
// false when that begins with something that it does not know.
func (v *Viewer) framesOf(changes []*change) (frames [][]byte, fits bool) {
	for _, c := range changes {
		if c.version <= v.at[c.kind].Version {
			continue
		}
		if c.was != v.knows[c.kind] {
			return frames, false
		}
		v.knows[c.kind] = c.is
		v.at[c.kind] = Place{c.version, c.is}
		frames = append(frames, c.rewritten(v.feed.tag, v.at))
	}
	return frames, true
}

// leavePast has the viewer go on with what the feed keeps.
func (v *Viewer) leavePast() standing {
	reached, err := v.past.end()
	switch {
	case errors.Is(err, errPastDiffers):
		return contradicts
	case err != nil:
		return isTooOld
	}
	for kind, version := range reached {
		v.at[kind] = Place{max(v.at[kind].Version, version), v.knows[kind]}
	}
	return v.feed.enter(v)
}

// lookAgain has the past looked for again if it was one that another viewer
// wanted, from where nobody can tell what happened.
func (f *Feed) lookAgain(v *Viewer) bool {
	p := v.past
	if _, err := p.end(); v.own || !refused(err) && !errors.Is(err, errPastTooLong) {
		return false
	}
	f.mu.Lock()
	if f.back == p {
		f.back = nil
	}
	f.mu.Unlock()
	v.past = f.pastFor(v, true)
	return v.past != nil
}

// standing is whether a viewer can go on with what the feed keeps.
type standing int

const (
	// goesOn: it knows all that happened before that.
	goesOn standing = iota
	// isTooOld: more has happened.
	isTooOld
	// contradicts: it knows what never was.
	contradicts
)

// enter has a viewer go on with what the feed keeps, if that is all that happened
// since.
func (f *Feed) enter(v *Viewer) standing {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept, head := f.topic.Kept()
	floor := f.floor(kept)
	next := *v
	next.at = v.since(floor)
	if !next.at.covers(floor) {
		return isTooOld
	}
	// Tried out before it is sent anything: who is to begin anew learns it now.
	for _, c := range kept {
		if !next.skips(c) && !next.take(c) {
			return contradicts
		}
	}
	if end := f.position(); end.covers(next.at) && end.sums() != next.knows {
		return contradicts
	}
	// What is kept comes by again for this viewer alone: it skips what it has
	// seen.
	v.at, v.cursor = v.since(floor), head-uint64(len(kept))
	return goesOn
}

// since gives where a viewer goes on: where it was, or at the floor of what is
// kept if it knows what there was then. Whatever happened between has come to
// nothing.
func (v *Viewer) since(floor Position) Position {
	at := v.at
	for kind := range kindCount {
		if at[kind].Version < floor[kind].Version && v.knows[kind] == floor[kind].Sum {
			at[kind] = floor[kind]
		}
	}
	return at
}

// How viewers who came back went on, besides the reasons of resets.
const (
	byKept = "kept" // out of what the replica keeps
	byPast = "past" // out of the shared log, or by a watch from there
)

// Resumptions are all that Config.Resumed may hear.
func Resumptions() []string {
	return []string{byKept, byPast, string(ResetUnknown), string(ResetNamespace), string(ResetExpired), string(ResetDiffers)}
}

func (f *Feed) resumed(how string) {
	if f.cfg.Resumed != nil {
		f.cfg.Resumed(how)
	}
}
