package livehub

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/kubelist"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/services/livehub/feed"
)

// linger is how long a namespace is followed after its last viewer has left:
// viewers that lose their edge come back within it.
const linger = 5 * time.Second

// feeds are the namespaces that have viewers here, each followed once for all
// of them. It is safe for concurrent use.
type feeds struct {
	open func(s calls.Scope) *feed.Feed

	// base is the context of every feed. It ends with close.
	base   context.Context
	cancel context.CancelFunc
	work   sync.WaitGroup

	mu  sync.Mutex
	all map[calls.Scope]*followed
}

// followed is a namespace that is followed.
type followed struct {
	*feed.Feed
	viewers int
	// asked is when the newest decision was made that led a viewer here.
	asked time.Time
	// ctx ends when it is not followed any more.
	ctx  context.Context
	stop context.CancelCauseFunc
	// idle stops it some time after the last viewer has left.
	idle *time.Timer
}

func newFeeds(open func(s calls.Scope) *feed.Feed, metrics prometheus.Registerer) *feeds {
	f := &feeds{open: open, all: map[calls.Scope]*followed{}}
	f.base, f.cancel = context.WithCancel(context.Background())
	metrics.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "glidepath_api_live_watches", Help: "Namespaces that this replica follows for the viewers of its live streams.",
	}, func() float64 {
		f.mu.Lock()
		defer f.mu.Unlock()
		return float64(len(f.all))
	}))
	return f
}

// close stops following every namespace, and returns when nothing is left of it.
func (f *feeds) close() {
	f.cancel()
	f.work.Wait()
}

// join gives the feed of a namespace, which the first viewer starts. asked is
// when it was decided that the viewer may see it. The viewer calls leave when it
// has left. life ends when the feed is of no use any more and its viewers must
// begin anew.
func (f *feeds) join(s calls.Scope, asked time.Time) (found *feed.Feed, life context.Context, leave func(), err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if err := f.supersede(s, asked); err != nil {
		return nil, nil, nil, err
	}
	one := f.all[s]
	if one == nil {
		one = &followed{Feed: f.open(s)}
		one.ctx, one.stop = context.WithCancelCause(f.base)
		f.all[s] = one
		f.work.Go(func() { f.run(s, one) })
	}
	if one.idle != nil {
		one.idle.Stop()
		one.idle = nil
	}
	one.viewers++
	if asked.After(one.asked) {
		one.asked = asked
	}
	return one.Feed, one.ctx, sync.OnceFunc(func() { f.leave(s, one) }), nil
}

// supersede ends what is followed of a namespace that is gone, once a viewer of
// the one that now has its name comes: a watch goes by the name, and would show
// the new one to those who were let in to the old one. A viewer who was let in to
// the one that is gone is sent back to be decided about again.
func (f *feeds) supersede(s calls.Scope, asked time.Time) error {
	for other, one := range f.all {
		if other.Namespace != s.Namespace || other.UID == s.UID {
			continue
		}
		if !asked.After(one.asked) {
			return problem.New(problem.Busy, "the app was made anew").WithHint("call again")
		}
		slog.InfoContext(one.ctx, "a namespace was made anew", "namespace", s.Namespace)
		delete(f.all, other)
		one.stop(context.Canceled)
	}
	return nil
}

func (f *feeds) run(s calls.Scope, one *followed) {
	err := one.Run(one.ctx)
	if !errors.Is(err, context.Canceled) {
		slog.WarnContext(one.ctx, "a namespace is followed anew", "namespace", s.Namespace, "error", err)
	}
	f.drop(s, one)
}

// drop forgets a feed, so that the next viewer gets a new one.
func (f *feeds) drop(s calls.Scope, one *followed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.all[s] == one {
		delete(f.all, s)
	}
	one.stop(context.Canceled)
}

func (f *feeds) leave(s calls.Scope, one *followed) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if one.viewers--; one.viewers > 0 {
		return
	}
	one.idle = time.AfterFunc(linger, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		if one.viewers == 0 && f.all[s] == one {
			delete(f.all, s)
			one.stop(context.Canceled)
		}
	})
}

// feedSource reads one namespace for its feed.
type feedSource struct {
	hub   *hub
	scope calls.Scope
}

var feedKinds = map[feed.Kind]kubelist.Kind{feed.PipelineRuns: pipelineRuns, feed.TaskRuns: taskRuns}

func (s feedSource) query(kind feed.Kind) kubelist.Query {
	return kubelist.Query{Kind: feedKinds[kind], Namespace: s.scope.Namespace}
}

// List is the list that polling callers get.
func (s feedSource) List(ctx context.Context, kind feed.Kind) (*kubelist.List, error) {
	l, err := s.hub.list(ctx, feedKinds[kind], s.scope)
	if err != nil {
		return nil, err
	}
	return l.list, nil
}

// Read is a list of now.
func (s feedSource) Read(ctx context.Context, kind feed.Kind) (*kubelist.List, error) {
	return s.hub.source.List(ctx, s.query(kind))
}

// ReadAt is a list of then.
func (s feedSource) ReadAt(ctx context.Context, kind feed.Kind, version string, names bool) (*kubelist.List, error) {
	q := s.query(kind)
	q.At, q.Names = version, names
	return s.hub.source.List(ctx, q)
}

// Latest asks for the version and for as few objects as can be.
func (s feedSource) Latest(ctx context.Context, kind feed.Kind) (string, error) {
	return s.hub.source.Version(ctx, s.query(kind))
}

// Watch watches.
func (s feedSource) Watch(ctx context.Context, kind feed.Kind, from kubelist.WatchFrom) (feed.Watch, error) {
	w, err := s.hub.source.Watch(ctx, s.query(kind), from)
	if err != nil {
		return nil, err
	}
	return w, nil
}
