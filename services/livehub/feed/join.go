package feed

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"hangar.io/glidepath/internal/sse"
)

// Viewer is one who follows a feed. It is not safe for concurrent use.
type Viewer struct {
	feed *Feed
	// at is what the viewer has seen. In the middle of what a list brought that is
	// less than what it knows.
	at Position
	// knows is of what it knows.
	knows sums
	// cursor is how far it has read the topic.
	cursor uint64
	// shown is up to where of the topic everything that it was sent has all.
	shown uint64
	// first is what it is sent before what the topic has.
	first [][]byte
	// past is what it is sent between, if what happened since is not kept; own
	// is whether it was looked for from where this viewer was.
	past *past
	own  bool
}

// Reset is why a viewer that came back gets everything anew.
type Reset string

// The reasons of a reset.
const (
	// ResetUnknown: the id is none that a stream has given.
	ResetUnknown Reset = "unknown"
	// ResetNamespace: the id is of a namespace that is gone, whatever now has
	// its name.
	ResetNamespace Reset = "namespace"
	// ResetExpired: it is not known any more what happened since.
	ResetExpired Reset = "expired"
	// ResetDiffers: what the viewer was shown is not what the cluster had. Who
	// showed it had lost a change, or the cluster was put back to what it was.
	ResetDiffers Reset = "differs"
)

// Join gives a viewer its place in a feed that is ready. With the id of the last
// event that it has seen, it goes on from there: out of what the feed keeps, else
// out of what replicas share, else by a watch from there. Without one, and where
// none of these tells all that happened since, it begins with everything.
func (f *Feed) Join(ctx context.Context, lastID string) (*Viewer, error) {
	if lastID == "" {
		return f.fresh("")
	}
	reason := ResetExpired
	tag, at, err := parseID(lastID)
	switch {
	case err != nil:
		reason = ResetUnknown
	case tag != f.tag:
		reason = ResetNamespace
	case f.plausible(ctx, at):
		v := &Viewer{feed: f, at: at, knows: at.sums()}
		switch f.enter(v) {
		case goesOn:
			f.resumed(byKept)
			return v, nil
		case contradicts:
			reason = ResetDiffers
		case isTooOld:
			if v.past = f.pastFor(v, false); v.past != nil {
				return v, nil
			}
		}
	}
	f.resumed(string(reason))
	return f.fresh(reason)
}

// fresh gives a viewer that begins with everything.
func (f *Feed) fresh(reason Reset) (*Viewer, error) {
	v := &Viewer{feed: f}
	if reason != "" {
		frame, err := f.reset(reason)
		if err != nil {
			return nil, err
		}
		v.first = append(v.first, frame)
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	all, err := f.all()
	if err != nil {
		return nil, err
	}
	v.first = append(v.first, all)
	v.begin(f.topic.Head())
	return v, nil
}

// reset gives the event that says why everything follows. Whoever has seen no
// more than that has seen nothing.
func (f *Feed) reset(reason Reset) ([]byte, error) {
	return sse.Event{ID: Position{}.id(f.tag), Type: "reset", Data: fmt.Appendf(nil, `{"reason":%q}`, reason)}.Append(nil)
}

// all gives the event that shows everything, written once for all who come
// before the next change.
func (f *Feed) all() ([]byte, error) {
	if f.snapshot != nil {
		return f.snapshot, nil
	}
	runs, tasks := f.elements(PipelineRuns), f.elements(TaskRuns)
	data := slices.Concat([]byte(`{"pipelineRuns":[`), runs, []byte(`],"taskRuns":[`), tasks, []byte(`]}`))
	frame, err := sse.Event{ID: f.position().id(f.tag), Type: "snapshot", Data: data}.Append(make([]byte, 0, len(data)+128))
	if err != nil {
		return nil, fmt.Errorf("writing a snapshot: %w", err)
	}
	f.snapshot = frame
	return frame, nil
}

// elements gives the objects of a kind in the order of the cluster, which is
// that of their names, with commas between.
func (f *Feed) elements(kind Kind) []byte {
	objects := f.kinds[kind].objects
	parts := make([][]byte, 0, len(objects))
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		parts = append(parts, objects[name].json)
	}
	return bytes.Join(parts, []byte(","))
}

// floor is the position after which every change is kept.
func (f *Feed) floor(kept []*change) Position {
	var floor Position
	for kind, s := range f.kinds {
		floor[kind] = Place{s.last, s.sum}
	}
	for _, c := range slices.Backward(kept) {
		floor[c.kind] = Place{c.before, c.was}
	}
	return floor
}

// First gives what the viewer is to be sent before it follows, once: a stream
// that is open for hours must not hold all that there was when it began.
func (v *Viewer) First() [][]byte {
	first := v.first
	v.first = nil
	return first
}

// ID is the id of what the viewer has seen.
func (v *Viewer) ID() string { return v.at.id(v.feed.tag) }

// begin has the viewer know all there is. The lock of its feed is held.
func (v *Viewer) begin(head uint64) {
	v.at, v.cursor, v.shown = v.feed.position(), head, head
	v.knows = v.at.sums()
}

// frame gives the bytes of a change, or nil when the viewer needs none.
func (v *Viewer) frame(c *change) []byte {
	v.cursor++
	switch {
	case v.cursor <= v.shown || v.skips(c):
		return nil
	case !v.take(c):
		return v.anew()
	case v.at == c.at:
		return c.frame
	}
	return c.rewritten(v.feed.tag, v.at)
}

// skips says whether the viewer has seen a change. A repair is for those alone
// who know what it repairs: on top of what came later it would put an older
// object.
func (v *Viewer) skips(c *change) bool {
	if at := v.at[c.kind].Version; c.version != at {
		return c.version < at
	}
	return !c.repair || c.was != v.knows[c.kind]
}

// take has the viewer know a change, unless it knows other things than those it
// is a change of.
func (v *Viewer) take(c *change) bool {
	other := 1 - c.kind
	if c.was != v.knows[c.kind] || c.at[other].Version >= v.at[other].Version && c.at[other].Sum != v.knows[other] {
		return false
	}
	v.knows[c.kind] = c.is
	v.at = v.at.later(c.at)
	return true
}

// anew gives everything, with the reason.
func (v *Viewer) anew() []byte {
	f := v.feed
	reset, err := f.reset(ResetDiffers)
	f.mu.Lock()
	defer f.mu.Unlock()
	all, errAll := f.all()
	if err != nil || errAll != nil {
		return nil // what the first snapshot could be made of, this one can
	}
	cursor := v.cursor
	v.begin(f.topic.Head())
	v.cursor = cursor // what of it is still to come by is read all the same
	return slices.Concat(reset, all)
}

// ping gives a comment, which says so where the cluster cannot be read, and the viewer's place where that has moved: an id that
// ages with an idle namespace would lead to nothing known.
func (v *Viewer) ping() []byte {
	f := v.feed
	f.mu.Lock()
	at, head, stale := f.position(), f.topic.Head(), f.stale()
	f.mu.Unlock()
	switch {
	case stale != nil:
		return sse.Comment("stale")
	case head != v.cursor || !at.covers(v.at):
		return sse.Comment("ping")
	case at.sums() != v.knows:
		return v.anew()
	case at == v.at:
		return sse.Comment("ping")
	}
	v.at = at
	return append(sse.AppendID([]byte(": ping\n"), v.ID()), '\n')
}
