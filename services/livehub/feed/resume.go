package feed

import (
	"context"
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
// everything anew when it is not. It takes no longer than that is looked for,
// and so sends no comments.
func (v *Viewer) catchUp(ctx context.Context, s *sse.Stream) error {
	p := v.past
	v.past = nil
	for next := 0; ; {
		changes, over, moved := p.after(next)
		next += len(changes)
		var frames [][]byte
		for _, c := range changes {
			if c.version > v.at[c.kind] {
				v.at[c.kind] = c.version
				frames = append(frames, c.rewritten(v.feed.tag, v.at))
			}
		}
		if len(frames) > 0 {
			if err := s.Send(frames...); err != nil {
				return err
			}
		}
		if len(changes) > 0 {
			continue
		}
		if over {
			break
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-moved:
		}
	}
	if reached, err := p.end(); err == nil {
		v.at = v.at.later(reached)
		if v.feed.enter(v) {
			v.feed.resumed(byPast)
			return nil
		}
	}
	v.feed.resumed(string(ResetExpired))
	again, err := v.feed.fresh(ResetExpired)
	if err != nil {
		return fmt.Errorf("beginning anew: %w", err)
	}
	v.at, v.cursor = again.at, again.cursor
	return s.Send(again.first...)
}

// enter has a viewer go on with what the feed keeps, if that is all that happened
// since.
func (f *Feed) enter(v *Viewer) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	kept, head := f.topic.Kept()
	if !v.at.covers(f.floor(kept)) {
		return false
	}
	// What is kept comes by again for this viewer alone: it skips what it has
	// seen.
	v.cursor = head - uint64(len(kept))
	return true
}

// How viewers who came back went on, besides the reasons of resets.
const (
	byKept = "kept" // out of what the replica keeps
	byPast = "past" // out of the shared log, or by a watch from there
)

// Resumptions are all that Config.Resumed may hear.
func Resumptions() []string {
	return []string{byKept, byPast, string(ResetUnknown), string(ResetNamespace), string(ResetExpired)}
}

func (f *Feed) resumed(how string) {
	if f.cfg.Resumed != nil {
		f.cfg.Resumed(how)
	}
}
