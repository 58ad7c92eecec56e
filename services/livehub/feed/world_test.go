package feed

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"

	"hangar.io/glidepath/internal/kubelist"
	"hangar.io/glidepath/internal/sse"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// world is a namespace of a cluster: what it holds, and what happened.
type world struct {
	mu      sync.Mutex
	version uint64
	objects [kindCount]map[string]kubelist.Event
	events  [kindCount][]kubelist.Event
	// history is what really happened, events is what watches tell of it.
	history [kindCount][]kubelist.Event
	// oldest is the version from which on events are remembered.
	oldest uint64
	// forbidden is whether no watch is granted, away whether nothing answers.
	forbidden, away bool
	// unstreamed is whether no watch begins with what there is.
	unstreamed bool
	// deaf has watches miss what happens.
	deaf   bool
	moved  chan struct{}
	broken chan struct{} // closed to break all watches
	ended  chan struct{} // closed to end them as a server does that ends
	// endless is whether no watch says where the beginning ends.
	endless bool
	// kept is a list of PipelineRuns that was kept for others.
	kept *kubelist.List
	// lists and watches count requests by kind, names those for names alone; open
	// is how many watches are.
	lists, watches, names, open [kindCount]int
}

func newWorld() *world {
	w := &world{version: 100, oldest: 100, moved: make(chan struct{}), broken: make(chan struct{}), ended: make(chan struct{})}
	for k := range w.objects {
		w.objects[k] = map[string]kubelist.Event{}
	}
	return w
}

// put makes an object, or another version of it.
func (w *world) put(kind Kind, name, spec string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version++
	e := kubelist.Event{Type: watch.Modified, Meta: kubelist.Meta{Namespace: "ns", Name: name, ResourceVersion: strconv.FormatUint(w.version, 10)}}
	if _, there := w.objects[kind][name]; !there {
		e.Type = watch.Added
	}
	e.JSON = fmt.Appendf(nil, `{"metadata":{"name":%q,"resourceVersion":"%d"},"spec":%q}`, name, w.version, spec)
	w.objects[kind][name] = e
	w.happened(kind, e)
}

// remove takes an object away.
func (w *world) remove(kind Kind, name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	e, there := w.objects[kind][name]
	if !there {
		return
	}
	delete(w.objects[kind], name)
	w.version++
	e.Type, e.ResourceVersion = watch.Deleted, strconv.FormatUint(w.version, 10)
	w.happened(kind, e)
}

func (w *world) happened(kind Kind, e kubelist.Event) {
	w.history[kind] = append(w.history[kind], e)
	if w.deaf {
		return
	}
	w.events[kind] = append(w.events[kind], e)
	close(w.moved)
	w.moved = make(chan struct{})
}

// putBack has the cluster be what it was at a version, as one is that is restored
// from a backup.
func (w *world) putBack(to uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version, w.oldest = to, min(w.oldest, to)
	later := func(e kubelist.Event) bool { v, _ := parseVersion(e.ResourceVersion); return v > to }
	for kind := range kindCount {
		w.history[kind] = slices.DeleteFunc(w.history[kind], later)
		w.events[kind] = slices.DeleteFunc(w.events[kind], later)
		clear(w.objects[kind])
		for _, e := range w.history[kind] {
			if w.objects[kind][e.Name] = e; e.Type == watch.Deleted {
				delete(w.objects[kind], e.Name)
			}
		}
	}
}

// elsewhere moves the cluster's version, as changes of other namespaces do.
func (w *world) elsewhere(by uint64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.version += by
}

// forget has the cluster forget what happened until now.
func (w *world) forget() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.oldest = w.version
}

// disturb breaks every watch.
func (w *world) disturb() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.broken)
	w.broken = make(chan struct{})
}

// replace ends every watch, as an API server does that is replaced.
func (w *world) replace() {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.ended)
	w.ended = make(chan struct{})
}

func (w *world) set(change func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	change()
}

// counts are of the requests about PipelineRuns, and of the watches open now.
type counts struct{ lists, watches, open int }

func (w *world) counts() counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return counts{w.lists[PipelineRuns], w.watches[PipelineRuns], w.open[PipelineRuns]}
}

// now is the state as a viewer folds it.
func (w *world) now() folded {
	w.mu.Lock()
	defer w.mu.Unlock()
	state := folded{}
	for kind := range kindCount {
		for name, e := range w.objects[kind] {
			state[kindNames[kind]+"/"+name] = string(e.JSON)
		}
	}
	return state
}

var runsGroup = schema.GroupResource{Group: "tekton.dev", Resource: "runs"}

func (w *world) List(ctx context.Context, kind Kind) (*kubelist.List, error) {
	w.mu.Lock()
	kept := w.kept
	w.mu.Unlock()
	if kept != nil && kind == PipelineRuns {
		return kept, nil
	}
	return w.Read(ctx, kind)
}

func (w *world) Read(_ context.Context, kind Kind) (*kubelist.List, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lists[kind]++
	if w.away {
		return nil, io.ErrUnexpectedEOF
	}
	var metas []kubelist.Meta
	var objects [][]byte
	for _, name := range slices.Sorted(maps.Keys(w.objects[kind])) {
		e := w.objects[kind][name]
		metas, objects = append(metas, e.Meta), append(objects, e.JSON)
	}
	return kubelist.NewList(strconv.FormatUint(w.version, 10), metas, objects), nil
}

func (w *world) ReadAt(_ context.Context, kind Kind, version string, names bool) (*kubelist.List, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	at, err := parseVersion(version)
	if names {
		w.names[kind]++
	} else {
		w.lists[kind]++
	}
	if w.away {
		return nil, io.ErrUnexpectedEOF
	}
	if err != nil || at < w.oldest {
		return nil, apierrors.NewResourceExpired("too old resource version")
	}
	then := map[string]kubelist.Event{}
	for _, e := range w.history[kind] {
		if v, _ := parseVersion(e.ResourceVersion); v > at {
			break
		}
		if then[e.Name] = e; e.Type == watch.Deleted {
			delete(then, e.Name)
		}
	}
	var metas []kubelist.Meta
	var objects [][]byte
	for _, name := range slices.Sorted(maps.Keys(then)) {
		metas, objects = append(metas, then[name].Meta), append(objects, then[name].JSON)
		if names {
			objects[len(objects)-1] = []byte("{}")
		}
	}
	return kubelist.NewList(version, metas, objects), nil
}

func (w *world) Latest(context.Context, Kind) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.away {
		return "", io.ErrUnexpectedEOF
	}
	return strconv.FormatUint(w.version, 10), nil
}

func (w *world) Watch(ctx context.Context, kind Kind, from kubelist.WatchFrom) (Watch, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.watches[kind]++
	if w.away {
		return nil, io.ErrUnexpectedEOF
	}
	if w.forbidden {
		return nil, fmt.Errorf("watching: %w", apierrors.NewForbidden(runsGroup, "", nil))
	}
	if w.unstreamed && from.InitialEvents {
		return nil, fmt.Errorf("watching: %w", apierrors.NewInvalid(schema.GroupKind{Kind: "ListOptions"}, "", nil))
	}
	ctx, cancel := context.WithTimeout(ctx, from.Timeout)
	one := &worldWatch{world: w, kind: kind, ctx: ctx, cancel: cancel, broken: w.broken, ended: w.ended, mark: time.After(from.Timeout - 2*time.Second)}
	if from.InitialEvents {
		one.next = len(w.events[kind])
		for _, name := range slices.Sorted(maps.Keys(w.objects[kind])) {
			e := w.objects[kind][name]
			e.Type = watch.Added
			one.first = append(one.first, e)
		}
		if w.endless {
			w.open[kind]++
			return one, nil
		}
		one.first = append(one.first, kubelist.Event{Type: watch.Bookmark, Meta: kubelist.Meta{ResourceVersion: strconv.FormatUint(w.version, 10)}, InitialEventsEnd: true})
	} else {
		version, err := parseVersion(from.ResourceVersion)
		if err != nil || version < w.oldest {
			cancel()
			return nil, apierrors.NewResourceExpired("too old resource version")
		}
		one.next = slices.IndexFunc(w.events[kind], func(e kubelist.Event) bool { v, _ := parseVersion(e.ResourceVersion); return v > version })
		if one.next < 0 {
			one.next = len(w.events[kind])
		}
	}
	w.open[kind]++
	return one, nil
}

type worldWatch struct {
	world  *world
	kind   Kind
	ctx    context.Context
	cancel func()
	broken chan struct{}
	ended  chan struct{}
	first  []kubelist.Event
	next   int
	// mark has a bookmark sent, two seconds before the end.
	mark <-chan time.Time
	once sync.Once
}

func (o *worldWatch) Close() {
	o.once.Do(func() {
		o.cancel()
		o.world.set(func() { o.world.open[o.kind]-- })
	})
}

func (o *worldWatch) Next() (kubelist.Event, error) {
	for {
		if len(o.first) > 0 {
			e := o.first[0]
			o.first = o.first[1:]
			return e, nil
		}
		o.world.mu.Lock()
		events, moved, version := o.world.events[o.kind], o.world.moved, o.world.version
		o.world.mu.Unlock()
		if o.next < len(events) {
			o.next++
			return events[o.next-1], nil
		}
		select {
		case <-o.ctx.Done():
			return kubelist.Event{}, io.EOF
		case <-o.ended:
			return kubelist.Event{}, io.EOF
		case <-o.broken:
			return kubelist.Event{}, io.ErrUnexpectedEOF
		case <-o.mark:
			return kubelist.Event{Type: watch.Bookmark, Meta: kubelist.Meta{ResourceVersion: strconv.FormatUint(version, 10)}}, nil
		case <-moved:
		}
	}
}

// folded is what a viewer makes of its stream: the JSON of each object.
type folded map[string]string

// screen is a viewer with an open stream.
type screen struct {
	t      *testing.T
	cancel context.CancelFunc
	done   chan struct{}

	mu     sync.Mutex
	state  folded
	lastID string
	// events are those that were read, comments too.
	events []string
	resets int
	end    error
	rest   []byte // of a frame that has not come as a whole
}

// open opens a stream; state is what the viewer knew before.
func open(t *testing.T, f *Feed, lastID string, state folded) *screen {
	t.Helper()
	v, err := f.Join(t.Context(), lastID)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	s := &screen{t: t, cancel: cancel, done: make(chan struct{}), state: maps.Clone(state), lastID: lastID}
	if s.state == nil {
		s.state = folded{}
	}
	go func() {
		defer close(s.done)
		stream, err := sse.Open(s, time.Minute)
		if err == nil {
			err = stream.Send(v.First()...)
		}
		if err == nil {
			err = v.Follow(ctx, stream, Bounds{Behind: 256, Every: 15 * time.Second})
		}
		s.end = err
	}()
	return s
}

func (s *screen) close() (string, folded) {
	s.cancel()
	<-s.done
	return s.lastID, s.state
}

func (s *screen) Header() http.Header              { return http.Header{} }
func (s *screen) WriteHeader(int)                  {}
func (s *screen) Flush()                           {}
func (s *screen) SetReadDeadline(time.Time) error  { return nil }
func (s *screen) SetWriteDeadline(time.Time) error { return nil }

// Write reads what the stream sends, as far as whole frames have come.
func (s *screen) Write(p []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.rest = append(s.rest, p...)
	whole := bytes.LastIndex(s.rest, []byte("\n\n")) + 2
	if whole < 2 {
		return len(p), nil
	}
	r := sse.NewReader(bytes.NewReader(s.rest[:whole]), 1<<20)
	s.rest = bytes.Clone(s.rest[whole:])
	r.OnComment = func(text string) { s.events = append(s.events, ":"+text) }
	for {
		e, err := r.Next()
		if r.LastID() != "" {
			s.lastID = r.LastID()
		}
		if err != nil {
			return len(p), nil
		}
		s.events = append(s.events, e.Type+" "+string(e.Data))
		s.fold(e)
	}
}

func (s *screen) fold(e sse.Event) {
	switch e.Type {
	case "reset":
		s.resets++
	case "snapshot":
		s.state = folded{}
		var all struct{ PipelineRuns, TaskRuns []json.RawMessage }
		if err := json.Unmarshal(e.Data, &all); err != nil {
			s.t.Errorf("a snapshot %s: %v", e.Data, err)
		}
		for kind, objects := range map[string][]json.RawMessage{"PipelineRun": all.PipelineRuns, "TaskRun": all.TaskRuns} {
			for _, o := range objects {
				var m struct{ Metadata struct{ Name string } }
				if err := json.Unmarshal(o, &m); err != nil {
					s.t.Error(err)
				}
				s.state[kind+"/"+m.Metadata.Name] = string(o)
			}
		}
	case "change":
		var c struct {
			Type, Kind, Name string
			Object           json.RawMessage
		}
		if err := json.Unmarshal(e.Data, &c); err != nil {
			s.t.Errorf("a change %s: %v", e.Data, err)
		}
		if c.Type == "upsert" {
			s.state[c.Kind+"/"+c.Name] = string(c.Object)
		} else {
			delete(s.state, c.Kind+"/"+c.Name)
		}
	}
}

// sees wants the viewer to know what the world holds.
func (s *screen) sees(w *world) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	want := w.now()
	if maps.Equal(s.state, want) {
		return
	}
	for name, object := range want {
		if s.state[name] != object {
			s.t.Errorf("of %s the viewer knows %q, want %q", name, s.state[name], object)
		}
	}
	for name := range s.state {
		if want[name] == "" {
			s.t.Errorf("the viewer knows %s, which is gone", name)
		}
	}
	s.t.Errorf("it is at %s, with %d resets, by\n%s", s.lastID, s.resets, strings.Join(s.events, "\n"))
}

func (s *screen) got() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.events)
}
