package ttl

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"go.opentelemetry.io/otel/trace"

	"hangar.io/glidepath/internal/telemetry"
)

// Group lets concurrent callers that ask for the same key share one fill. A
// fill is detached from the caller that started it: that caller may leave
// without failing those who joined. It is bounded by a deadline of its own and
// by the life of the group. It belongs to the trace of that caller; the spans of
// those who joined link to it. A Group is safe for concurrent use.
//
// x/sync/singleflight does not do here: it cannot wait for the fills under way
// at the end, and a panic in a fill whose caller has left ends the process.
type Group[K comparable, V any] struct {
	life    context.Context
	end     context.CancelFunc
	timeout time.Duration

	mu      sync.Mutex
	closed  bool
	flights map[K]*flight[V]
	running sync.WaitGroup
}

// flight is one fill under way. Its answer is read after done is closed.
type flight[V any] struct {
	work  trace.SpanContext // what it is a part of
	done  chan struct{}
	value V
	err   error
}

// NewGroup gives a group whose fills take at most timeout each. Whoever makes
// it must Close it.
func NewGroup[K comparable, V any](timeout time.Duration) *Group[K, V] {
	life, end := context.WithCancel(context.Background())
	return &Group[K, V]{life: life, end: end, timeout: timeout, flights: map[K]*flight[V]{}}
}

// ErrClosed is the answer of a group that was closed.
var ErrClosed = errors.New("shutting down")

// Do gives the answer of the fill that is under way for key, or starts fill for
// it. It returns early with ctx's error when ctx ends first; the fill goes on.
// joined says that another caller started the fill. An answer is shared:
// callers only read it.
func (g *Group[K, V]) Do(ctx context.Context, key K, fill func(context.Context) (V, error)) (value V, joined bool, err error) {
	f, joined, err := g.flight(ctx, key, fill)
	if err != nil {
		return value, false, err
	}
	if joined {
		telemetry.Link(ctx, f.work)
	}
	select {
	case <-f.done:
		return f.value, joined, f.err
	case <-ctx.Done():
		return value, joined, ctx.Err()
	}
}

func (g *Group[K, V]) flight(ctx context.Context, key K, fill func(context.Context) (V, error)) (f *flight[V], joined bool, err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.closed {
		return nil, false, ErrClosed
	}
	if f, ok := g.flights[key]; ok {
		return f, true, nil
	}
	f = &flight[V]{work: trace.SpanContextFromContext(ctx), done: make(chan struct{})}
	g.flights[key] = f
	life := telemetry.Detach(g.life, ctx)
	g.running.Go(func() { g.run(life, key, f, fill) })
	return f, false, nil
}

func (g *Group[K, V]) run(life context.Context, key K, f *flight[V], fill func(context.Context) (V, error)) {
	ctx, cancel := context.WithTimeout(life, g.timeout)
	defer cancel()
	f.value, f.err = guard(ctx, fill)
	g.mu.Lock()
	delete(g.flights, key)
	g.mu.Unlock()
	close(f.done)
}

// guard turns a panic of fill into an error: it runs on a goroutine of its own,
// where a panic would end the process.
func guard[V any](ctx context.Context, fill func(context.Context) (V, error)) (value V, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("panic in a fill: %v\n%s", p, debug.Stack())
		}
	}()
	return fill(ctx)
}

// Close ends the fills under way and waits for them. Do answers ErrClosed from
// then on. Close may be called more than once.
func (g *Group[K, V]) Close() {
	g.mu.Lock()
	g.closed = true
	g.mu.Unlock()
	g.end()
	g.running.Wait()
}
