package feed

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/sse"
)

const (
	// keptChanges is how many changes are kept for viewers that come back, and
	// keptBytes how large they may be.
	keptChanges = 2048
	keptBytes   = 32 << 20
)

// Feed is what the viewers of one namespace see. It is safe for concurrent use.
type Feed struct {
	cfg   Config
	tag   string
	topic *sse.Topic[*change]

	mu      sync.Mutex
	kinds   [kindCount]kindState
	reached reached
	// snapshot is the event that shows all, while nothing has changed since.
	snapshot []byte
	// news is closed when a fault or whether the kinds are known changes.
	news chan struct{}

	// back is what happened before what is kept, if somebody had that looked
	// for. pasts is how many are being looked for, and wanted those that Run is
	// to look for next. Once it has ended it looks for none.
	back   *past
	pasts  int
	wanted chan *past
	ended  bool
}

// kindState is one kind as the cluster last gave it.
type kindState struct {
	objects map[string]object // by name; nil until they have been read once
	sum     uint64            // of objects
	at      uint64            // every change up to here is in objects
	last    uint64            // version of the last change that was published, or where publishing began
	fault   error             // why it is not known, or known no better; nil when all is well
	since   time.Time         // of the fault
}

type object struct {
	version uint64
	json    []byte
}

func newFeed(cfg Config) *Feed {
	return &Feed{
		cfg: cfg, tag: tagOf(cfg.NamespaceUID),
		topic: sse.NewTopic(sse.Limits{Count: keptChanges, Bytes: keptBytes}, sizeOf),
		news:  make(chan struct{}), wanted: make(chan *past, maxPasts),
		reached: reached{turn: make(chan struct{}, 1)},
	}
}

// staleTime is for how long what is known may be taken for what is, once it is
// not followed any more: so long a watch may take to begin again.
const staleTime = 30 * time.Second

// Ready waits until the namespace has been read once. It gives up with what
// keeps it from being read, or has kept it for staleTime.
func (f *Feed) Ready(ctx context.Context) error {
	for {
		f.mu.Lock()
		known, fault, news := f.known(), f.stale(), f.news
		f.mu.Unlock()
		if fault != nil {
			return fault
		}
		if known {
			return nil
		}
		select {
		case <-news:
		case <-ctx.Done():
			return fmt.Errorf("waiting for a namespace: %w", ctx.Err())
		}
	}
}

// stale gives why a kind is not known, or has not been followed for long.
func (f *Feed) stale() error {
	for _, s := range f.kinds {
		if s.fault != nil && (s.objects == nil || time.Since(s.since) > staleTime) {
			return s.fault
		}
	}
	return nil
}

func (f *Feed) known() bool {
	return f.kinds[PipelineRuns].objects != nil && f.kinds[TaskRuns].objects != nil
}

// failed notes why a kind could not be read.
func (f *Feed) failed(kind Kind, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.kinds[kind]
	if s.fault == nil {
		s.since = time.Now()
	}
	s.fault = fmt.Errorf("following %ss: %w", kindNames[kind], err)
	f.tell()
}

// followed notes that a kind is followed again.
func (f *Feed) followed(kind Kind) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.kinds[kind].fault = nil
}

func (f *Feed) tell() {
	close(f.news)
	f.news = make(chan struct{})
}

// position is where a viewer is that has seen all.
func (f *Feed) position() Position {
	var p Position
	for kind, s := range f.kinds {
		p[kind] = Place{s.at, s.sum}
	}
	return p
}

// entry is an object that was read. One that is gone has neither version nor
// JSON.
type entry struct {
	name    string
	version uint64
	json    []byte
}

func (e entry) gone() bool { return len(e.json) == 0 }

// sumAfter gives the sum once an object has a version; 0 for one that is gone.
func (s *kindState) sumAfter(name string, version uint64) uint64 {
	sum := s.sum
	if old, there := s.objects[name]; there {
		sum -= weigh(name, old.version)
	}
	if version > 0 {
		sum += weigh(name, version)
	}
	return sum
}

// apply takes a change that a watch brought, of a version.
func (f *Feed) apply(kind Kind, e entry, version uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.kinds[kind]
	if s.objects == nil || version <= s.at {
		return nil // known already
	}
	if _, there := s.objects[e.name]; !there && e.gone() {
		s.at = version
		return nil
	}
	at := f.position()
	at[kind] = Place{version, s.sumAfter(e.name, e.version)}
	c, err := f.change(kind, e, version, at)
	if err != nil {
		return err
	}
	s.at = version
	f.snapshot = nil
	f.topic.Publish(c)
	if f.cfg.Log != nil {
		f.cfg.Log.Append(kind, cache.Entry{Before: c.before, At: c.version, Was: c.was, Is: c.is, Body: c.frame[c.body:]})
	}
	return nil
}

// change writes a change down, takes it into the state, and gives it. Version is
// when it happened.
func (f *Feed) change(kind Kind, e entry, version uint64, at Position) (*change, error) {
	frame, body, err := write(f.tag, kind, e.name, e.json, at)
	if err != nil {
		return nil, err
	}
	s := &f.kinds[kind]
	c := &change{kind: kind, version: version, before: s.last, was: s.sum, at: at, frame: frame, body: body}
	s.sum = s.sumAfter(e.name, e.version)
	if c.is = s.sum; e.gone() {
		delete(s.objects, e.name)
	} else {
		s.objects[e.name] = object{version: e.version, json: within(frame, e.json)}
	}
	s.last = max(s.last, version)
	return c, nil
}

// within gives the object's bytes as they stand in its frame, so that they are
// kept once.
func within(frame, json []byte) []byte {
	end := len(frame) - len("}\n\n")
	if start := end - len(json); start > 0 && bytes.Equal(frame[start:end], json) {
		return frame[start:end:end]
	}
	return json // it had line ends
}

// moved notes that nothing of a kind changed up to a version.
func (f *Feed) moved(kind Kind, version uint64) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s := &f.kinds[kind]; s.objects != nil && version > s.at {
		s.at = version
	}
}

// errBackwards says that the cluster's versions went back: it was put back to
// what it was before, and nothing that was seen of it holds any more.
var errBackwards = errors.New("the cluster's resourceVersions went back")

// replace takes a list: all objects of a kind as of a version.
func (f *Feed) replace(kind Kind, listed []entry, at uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &f.kinds[kind]
	if at < s.at {
		return errBackwards
	}
	if s.objects == nil {
		return f.begin(kind, listed, at)
	}
	s.fault = nil
	changes, err := f.differences(kind, listed, at)
	if err != nil {
		return err
	}
	if at > s.at {
		// A list says nothing of what came and went before it.
		s.at, s.last = at, at
	}
	if len(changes) > 0 {
		f.snapshot = nil
	}
	f.topic.Publish(changes...)
	return nil
}

// begin takes the first list of a kind.
func (f *Feed) begin(kind Kind, listed []entry, at uint64) error {
	s := kindState{objects: make(map[string]object, len(listed)), at: at, last: at}
	for _, e := range listed {
		s.sum = s.sumAfter(e.name, e.version)
		s.objects[e.name] = object{version: e.version, json: bytes.Clone(e.json)}
	}
	f.kinds[kind] = s
	f.tell()
	return nil
}

// difference is what a list says of one object, and when that happened.
type difference struct {
	entry

	at uint64
}

// differences gives what a list brought, in the order of its versions. What
// went, and what came with a version that should have been known, is only known
// to have happened by the version of the list.
func (f *Feed) differences(kind Kind, listed []entry, list uint64) ([]*change, error) {
	s := &f.kinds[kind]
	before, found := f.position(), s.compare(listed, list)
	changes := make([]*change, 0, len(found))
	for i, d := range found {
		at := before
		if i == len(found)-1 {
			at[kind] = Place{list, s.sumAfter(d.name, d.version)}
		}
		c, err := f.change(kind, d.entry, d.at, at)
		if err != nil {
			return nil, err
		}
		c.repair = d.at <= s.at
		changes = append(changes, c)
	}
	return changes, nil
}

// compare gives what a list says that is not known.
func (s *kindState) compare(listed []entry, list uint64) []difference {
	var found []difference
	there := make(map[string]bool, len(listed))
	for _, e := range listed {
		there[e.name] = true
		if old, ok := s.objects[e.name]; ok && old.version >= e.version {
			continue
		}
		d := difference{entry: e, at: e.version}
		if e.version <= s.at {
			d.at = list
		}
		found = append(found, d)
	}
	for _, name := range slices.Sorted(maps.Keys(s.objects)) {
		if !there[name] {
			found = append(found, difference{entry: entry{name: name}, at: list})
		}
	}
	slices.SortStableFunc(found, func(a, b difference) int { return cmp.Compare(a.at, b.at) })
	return found
}
