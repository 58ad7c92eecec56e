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
	// at is what the viewer has seen.
	at Position
	// cursor is how far it has read the topic.
	cursor uint64
	// first is what it is sent before what the topic has.
	first [][]byte
	// past is what it is sent between, if what happened since is not kept.
	past *past
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
		v := &Viewer{feed: f, at: at}
		if f.enter(v) {
			f.resumed(byKept)
			return v, nil
		}
		if v.past = f.pastFor(at); v.past != nil {
			return v, nil
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
	v.at, v.cursor = f.position(), f.topic.Head()
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
func (f *Feed) elements(kind Index) []byte {
	objects := f.kinds[kind].objects
	parts := make([][]byte, 0, len(objects))
	for _, name := range slices.Sorted(maps.Keys(objects)) {
		parts = append(parts, objects[name].json)
	}
	return bytes.Join(parts, []byte(","))
}

// plausible says whether the cluster has been where a viewer is. Another replica
// may have shown it more than this one has seen yet, but a cluster that was put
// back to what it was has made up versions that say nothing.
func (f *Feed) plausible(ctx context.Context, at Position) bool {
	f.mu.Lock()
	reached := f.reached.later(f.position())
	f.mu.Unlock()
	if reached.covers(at) {
		return true
	}
	for kind := range kindCount {
		if at[kind] <= reached[kind] {
			continue
		}
		l, err := f.cfg.Source.Latest(ctx, kind)
		if err != nil {
			return false
		}
		if reached[kind], err = parseVersion(l); err != nil || at[kind] > reached[kind] {
			return false
		}
	}
	f.mu.Lock()
	f.reached = f.reached.later(reached)
	f.mu.Unlock()
	return true
}

// floor is the position after which every change is kept.
func (f *Feed) floor(kept []*change) Position {
	floor := Position{f.kinds[PipelineRuns].last, f.kinds[TaskRuns].last}
	for _, c := range slices.Backward(kept) {
		floor[c.kind] = c.before
	}
	return floor
}

// First gives what the viewer is to be sent before it follows.
func (v *Viewer) First() [][]byte { return v.first }

// ID is the id of what the viewer has seen.
func (v *Viewer) ID() string { return v.at.id(v.feed.tag) }

// frame gives the bytes of a change, or nil when the viewer has seen it.
func (v *Viewer) frame(c *change) []byte {
	v.cursor++
	// Whoever comes back may have seen what came after a repair: on top of that it
	// would put an older object.
	if c.blinds(v.at) || c.repair && c.version < v.at[c.kind] {
		return v.anew()
	}
	if c.mark() {
		return nil
	}
	if c.version <= v.at[c.kind] && !c.repair {
		return nil
	}
	if v.at = v.at.later(c.at); v.at == c.at {
		return c.frame
	}
	return c.rewritten(v.feed.tag, v.at)
}

// anew gives everything, with the reason. What of it is still to come by counts
// as seen.
func (v *Viewer) anew() []byte {
	f := v.feed
	reset, err := f.reset(ResetExpired)
	f.mu.Lock()
	defer f.mu.Unlock()
	all, errAll := f.all()
	if err != nil || errAll != nil {
		return nil // what the first snapshot could be made of, this one can
	}
	v.at = f.position()
	return slices.Concat(reset, all)
}

// ping gives a comment, and the viewer's place where that has moved: an id that
// ages with an idle namespace would lead to nothing known.
func (v *Viewer) ping() []byte {
	f := v.feed
	f.mu.Lock()
	at, head := f.position(), f.topic.Head()
	f.mu.Unlock()
	if head != v.cursor || !at.covers(v.at) || at == v.at {
		return sse.Comment("ping")
	}
	v.at = at
	return append(sse.AppendID([]byte(": ping\n"), v.ID()), '\n')
}
