package telemetry

import (
	"context"
	"slices"
	"sync"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
)

// batches are the spans of a process on their way to the collector: encoded as
// they end, sent in batches by one goroutine, and bounded. Whoever ends a span
// never waits for the collector. It is a sdktrace.SpanProcessor.
//
// The SDK's own keeps the spans themselves and makes messages of them later.
type batches struct {
	exporter *exporter

	mu      sync.Mutex
	filling batch
	full    []batch // oldest first
	empty   [][]byte
	closed  bool

	wake  chan struct{} // something is full
	flush chan struct{} // closed at the end: send what is there, and end
	life  context.Context
	stop  context.CancelFunc // gives up sending
	ended chan struct{}
}

// batch is a number of encoded spans.
type batch struct {
	raw   []byte
	spans int
}

// newBatches starts the sending. Whoever makes one calls Shutdown.
func newBatches(e *exporter) *batches {
	life, stop := context.WithCancel(context.Background())
	b := &batches{
		exporter: e, wake: make(chan struct{}, 1), flush: make(chan struct{}), life: life, stop: stop, ended: make(chan struct{}),
	}
	go b.run()
	return b
}

// OnStart does nothing: a span counts when it has ended.
func (b *batches) OnStart(context.Context, sdktrace.ReadWriteSpan) {}

// OnEnd takes a span. One that finds no room is dropped.
func (b *batches) OnEnd(s sdktrace.ReadOnlySpan) {
	if !s.SpanContext().IsSampled() {
		return
	}
	b.exporter.ended.Inc()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || len(b.full) == queueBatches {
		return
	}
	b.filling.raw = appendSpan(b.filling.raw, s)
	if b.filling.spans++; b.filling.spans == batchSpans || len(b.filling.raw) >= batchBytes {
		b.turn()
		select {
		case b.wake <- struct{}{}:
		default:
		}
	}
}

// turn puts the batch that is filling with the full ones. b.mu is held.
func (b *batches) turn() {
	b.full = append(b.full, b.filling)
	b.filling = batch{}
	if last := len(b.empty) - 1; last >= 0 {
		b.filling.raw, b.empty = b.empty[last], b.empty[:last]
	}
}

// next takes the oldest full batch; without one, what there is, if it is told
// to.
func (b *batches) next(rest bool) (batch, bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.full) == 0 {
		if !rest || b.filling.spans == 0 {
			return batch{}, false
		}
		b.turn()
	}
	one := b.full[0]
	b.full = slices.Delete(b.full, 0, 1)
	return one, true
}

// give takes back the memory of a batch that was sent. One is kept for each of
// those that are filling and under way.
func (b *batches) give(raw []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.empty) < 2 && cap(raw) <= 2*batchBytes {
		b.empty = append(b.empty, raw[:0])
	}
}

// run sends what is full at once, and what is not after a while.
func (b *batches) run() {
	defer close(b.ended)
	defer b.stop()
	t := time.NewTicker(batchDelay)
	defer t.Stop()
	for {
		select {
		case <-b.flush:
			b.send(true)
			return
		case <-b.wake:
			b.send(false)
		case <-t.C:
			b.send(true)
		}
	}
}

func (b *batches) send(rest bool) {
	for {
		one, ok := b.next(rest)
		if !ok {
			return
		}
		b.exporter.send(b.life, one)
		b.give(one.raw)
	}
}

// ForceFlush is not needed: nobody asks for it, and Shutdown sends all.
func (b *batches) ForceFlush(context.Context) error { return nil }

// Shutdown sends the spans that wait, until ctx ends: those that are left then
// have failed. It waits for the end of the sending and may be called again.
func (b *batches) Shutdown(ctx context.Context) error {
	b.mu.Lock()
	if !b.closed {
		b.closed = true
		close(b.flush)
	}
	b.mu.Unlock()
	defer context.AfterFunc(ctx, b.stop)()
	<-b.ended
	return ctx.Err()
}
