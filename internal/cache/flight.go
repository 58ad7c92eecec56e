package cache

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"go.opentelemetry.io/otel/trace"

	"hangar.io/glidepath/internal/telemetry"
)

// flight is one read of one key that callers of this process share. The fields
// below done are set before it is closed, and then only read.
type flight[T any] struct {
	cache  *Cache[T]
	key    string
	maxAge time.Duration
	fill   Lasting[T]
	work   trace.SpanContext // the call that began it

	done   chan struct{}
	value  T
	began  time.Time     // when the reading of value began, on this process's clock
	until  time.Time     // when value is none any more
	life   time.Duration // what fill said
	result result
	err    error
}

// run gets the value, wherever it comes from. It never outlives the cache.
func (f *flight[T]) run(life context.Context) {
	if r := f.cache.cfg.Redis; r != nil && r.Up() {
		f.share(life, r)
		return
	}
	f.read(life, time.Now())
	f.land()
}

// link notes on the span of a call that the flight it waits for is another's.
func (f *flight[T]) link(ctx context.Context) {
	if !f.work.Equal(trace.SpanContextFromContext(ctx)) {
		telemetry.Link(ctx, f.work)
	}
}

// read reads the source, for what counts as read from a moment on.
func (f *flight[T]) read(ctx context.Context, began time.Time) {
	ctx, cancel := context.WithTimeout(ctx, f.cache.cfg.FillTime)
	defer cancel()
	f.began, f.result = began, resultFill
	f.value, f.life, f.err = f.guarded(ctx)
	f.until = began.Add(f.maxAge)
	if f.life > 0 {
		f.until = time.Now().Add(f.life)
	}
	f.cache.metrics.fills(f.err)
}

// guarded turns a panic into an error: reads happen in no caller's goroutine,
// where one odd value would end the process and all that it serves.
func (f *flight[T]) guarded(ctx context.Context) (value T, life time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("reading panicked: %v", p)
			slog.ErrorContext(ctx, "a read panicked", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	return f.fill(ctx)
}

// land gives the outcome to everyone who waits, and keeps a value. It is called
// once.
func (f *flight[T]) land() {
	c := f.cache
	c.mu.Lock()
	delete(c.flights, f.key)
	if len(c.flights) == 0 {
		close(c.quiet)
	}
	if f.err == nil && !c.closed {
		c.keep(f.key, f.value, f.began, f.until)
	}
	c.mu.Unlock()
	close(f.done)
}
