package livehub

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"hangar.io/glidepath/api/livehubapi"
	"hangar.io/glidepath/internal/calls"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/renewal"
	"hangar.io/glidepath/internal/sse"
	"hangar.io/glidepath/services/livehub/feed"
)

const (
	// pingEvery keeps whatever is between from taking a stream for dead: the
	// edge does after a minute.
	pingEvery = 15 * time.Second
	// writeTime is how long a viewer may take for a part of what it is sent.
	writeTime = 30 * time.Second
	// endTime is how long it may take for all that is left of a stream that ends.
	endTime = 5 * time.Second
	// maxBehind is how many changes a viewer may be behind.
	maxBehind = 256
	// drainTime spreads the ends of the streams of a replica that ends, so that
	// its viewers do not come to the others all at once. It leaves the server
	// time to see them off.
	drainTime = 5 * time.Second
	// comeBack is the least and the spread of how long viewers are to wait
	// before they come back after their stream has ended or was broken off.
	comeBack, comeBackSpread = 200 * time.Millisecond, 800 * time.Millisecond
)

// endError is why a stream was ended that renewals would have kept open. It is
// the cause of the stream's context.
type endError string

// Error says why.
func (e endError) Error() string { return "the stream ends: " + string(e) }

const (
	errDrain  endError = "drain"
	errLagged endError = "lagged"
)

// streams are the live streams of this replica.
type streams struct {
	feeds *feeds
	// turns has room for as many streams as there may be.
	turns chan struct{}
	// keep keeps a call's stream open for as long as its caller may have it.
	keep func(r *http.Request) (ctx context.Context, release func(), err error)

	// serving ends when the replica does.
	serving context.Context
	stop    context.CancelFunc

	mu     sync.Mutex
	closed bool           // there is no further stream
	open   sync.WaitGroup // streams, which the server does not know of
}

func newStreams(f *feeds, most int) *streams {
	s := &streams{feeds: f, turns: make(chan struct{}, most)}
	s.serving, s.stop = context.WithCancel(context.Background())
	return s
}

// run ends all streams when ctx does, and returns when they have ended.
func (s *streams) run(ctx context.Context) {
	<-ctx.Done()
	s.drain()
	s.open.Wait()
}

// drain lets no further stream in, and begins to end those that are open.
func (s *streams) drain() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.stop()
}

// StreamLiveRuns shows what an app's namespace holds, and how that changes.
func (s *server) StreamLiveRuns(w http.ResponseWriter, r *http.Request, app string, params livehubapi.StreamLiveRunsParams) {
	scope, err := calls.AppScope(r, app)
	if err != nil {
		problem.Write(w, r, err)
		return
	}
	lastID := ""
	if params.LastEventID != nil {
		lastID = *params.LastEventID
	}
	if err := s.live.serve(w, r, scope, lastID, s.wait); err != nil {
		problem.Write(w, r, asProblem(err))
	}
}

// serve answers a call with a stream; an error is the answer instead. The stream
// goes on without the server where it can: then an idle one takes a third of the
// memory.
func (s *streams) serve(w http.ResponseWriter, r *http.Request, where calls.Scope, lastID string, wait time.Duration) error {
	one, err := s.admit(r, where)
	if err != nil {
		return err
	}
	viewer, err := s.join(one, lastID, wait)
	if err != nil {
		if s.serving.Err() != nil {
			err = ending(r.PathValue("app"))
		}
		one.leave()
		return err
	}
	stream, err := sse.Take(w, r, writeTime, func() { one.end(context.Canceled) })
	if err != nil {
		one.leave()
		return err
	}
	show := func() {
		defer one.leave()
		defer stream.Close()
		for _, c := range []context.Context{s.serving, one.life} {
			defer endWith(c, one.end)()
		}
		defer stream.EndWith(one.ctx, endTime)()
		s.show(one.ctx, stream, viewer)
	}
	if !stream.Taken() {
		show()
		return nil
	}
	one.detach()
	go alone(one.ctx, show)
	return nil
}

// alone has a stream that panics end no other: the server is not there any more
// to see to that.
func alone(ctx context.Context, show func()) {
	defer func() {
		if p := recover(); p != nil {
			slog.ErrorContext(ctx, "panic in a live stream, which ends", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
		}
	}()
	show()
}

// admitted is what is held for a stream until it ends.
type admitted struct {
	// ctx is the stream's. It ends with the call's until detach.
	ctx    context.Context //nolint:containedctx // that of the stream
	end    context.CancelCauseFunc
	detach func()
	feed   *feed.Feed
	life   context.Context //nolint:containedctx // that of the feed
	// undo gives back what is held, the last first.
	undo []func()
}

func (a *admitted) leave() {
	for _, undo := range slices.Backward(a.undo) {
		undo()
	}
}

// admit gives a call all that its stream needs, or says why it gets none.
func (s *streams) admit(r *http.Request, where calls.Scope) (*admitted, error) {
	free, err := s.take(r.PathValue("app"))
	if err != nil {
		return nil, err
	}
	ctx, release, err := s.keep(r.WithContext(context.WithoutCancel(r.Context())))
	if err != nil {
		free()
		return nil, err
	}
	f, life, leave, err := s.feeds.join(where, askedAt(r))
	if err != nil {
		release()
		free()
		return nil, err
	}
	a := &admitted{feed: f, life: life}
	a.ctx, a.end = context.WithCancelCause(ctx)
	attached := context.AfterFunc(r.Context(), func() { a.end(context.Canceled) })
	a.detach = func() { attached() }
	a.undo = []func(){free, release, func() { a.end(nil) }, a.detach, leave}
	return a, nil
}

// askedAt is when it was decided about a call.
func askedAt(r *http.Request) time.Time {
	if c, ok := identity.FromContext(r.Context()); ok && c.IssuedAt != nil {
		return c.IssuedAt.Time
	}
	return time.Time{}
}

// take gives a stream its turn, or says that there is none.
func (s *streams) take(app string) (free func(), err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, ending(app)
	}
	select {
	case s.turns <- struct{}{}:
		s.open.Add(1)
		return func() { <-s.turns; s.open.Done() }, nil
	default:
		return nil, problem.New(problem.Busy, "this replica serves as many streams as it may").WithHint(pollInstead(app))
	}
}

func pollInstead(app string) string { return "poll GET /v1/apps/" + app + "/live instead" }

// ending is the answer of a replica that ends. The edge tries another.
func ending(app string) error {
	return problem.New(problem.Busy, "this replica is ending").WithHint(pollInstead(app))
}

// join waits for the namespace to be read, and gives the viewer its place. Who
// waits does not hold up the end of the replica.
func (s *streams) join(one *admitted, lastID string, wait time.Duration) (*feed.Viewer, error) {
	ctx, cancel := context.WithTimeout(one.ctx, wait)
	defer cancel()
	defer context.AfterFunc(s.serving, cancel)()
	if err := one.feed.Ready(ctx); err != nil {
		return nil, err
	}
	return one.feed.Join(ctx, lastID)
}

// endWith ends a stream some time within drainTime after c has ended, unless the
// returned function was called before.
func endWith(c context.Context, end context.CancelCauseFunc) (undo func() bool) {
	return context.AfterFunc(c, func() {
		time.AfterFunc(rand.N(drainTime), func() { end(errDrain) }) //nolint:gosec // it spreads load and hides nothing
	})
}

// show writes the stream, to its end.
func (s *streams) show(ctx context.Context, stream *sse.Stream, v *feed.Viewer) {
	// An edge that ends breaks its streams off without a word: when to come back is
	// said before.
	if err := stream.Send(append([][]byte{retry()}, v.First()...)...); err != nil {
		return // the viewer left
	}
	err := v.Follow(ctx, stream, feed.Bounds{Behind: maxBehind, Every: pingEvery})
	if errors.Is(err, sse.ErrLagged) {
		err = errLagged
	}
	if frames := lastFrames(err, v.ID()); frames != nil {
		_ = stream.Send(frames...) // the viewer may have left
	}
}

// retry says when a viewer is to come back. Each is told another time: those of
// one edge or replica must not come all at once.
func retry() []byte {
	return sse.Retry(comeBack + rand.N(comeBackSpread)) //nolint:gosec // it spreads load and hides nothing
}

// lastFrames are what a stream that is ended on purpose ends with: why, and when
// to come back.
func lastFrames(err error, id string) [][]byte {
	var frames [][]byte
	reason := ""
	if end, ok := errors.AsType[*renewal.EndError](err); ok {
		reason = string(end.Reason)
	} else if end, ok := errors.AsType[endError](err); ok {
		reason = string(end)
	}
	switch reason {
	case "":
		return nil
	case string(errLagged):
		frames = append(frames, sse.Comment("lagged"))
	case string(errDrain), string(renewal.Lifetime), string(renewal.Unrenewed):
		frames = append(frames, retry())
	}
	event := sse.Event{ID: id, Type: "end", Data: fmt.Appendf(nil, `{"reason":%q}`, reason)}
	if end, err := event.Append(nil); err == nil {
		frames = append(frames, end)
	}
	return frames
}
