package runs

import (
	"context"
	"fmt"
	"sync"
	"time"

	"hangar.io/glidepath/internal/cache"
)

// heavyReads is how many full lists a replica reads at once, each of another
// namespace. heavyWaits is how many more wait for that, which keeps them from taking
// all that there may be of other reads.
const (
	heavyReads = 2
	heavyWaits = 32
)

// turns bounds what is done at once and what waits to be, in all and for each
// namespace: one that is slow or asked for a lot leaves turns to the others.
type turns struct {
	now  chan struct{}
	most int // at once, with those that wait
	// The same for each namespace.
	eachNow, eachMost int

	mu     sync.Mutex
	begun  int
	queues map[string]*queue
}

// queue is what is begun of a namespace.
type queue struct {
	now   chan struct{}
	begun int
}

// newTurns gives turns of which so many are taken at once, each of them by one
// namespace. No namespace takes more than a quarter of the places to wait.
func newTurns(atOnce, waiting, each int) *turns {
	return &turns{
		now: make(chan struct{}, atOnce), most: atOnce + waiting,
		eachNow: each, eachMost: each + waiting/4,
		queues: map[string]*queue{},
	}
}

// begin waits for a turn of a namespace, for so long. done ends it. Without one,
// because too many wait or for too long, it is cache.ErrBusy.
func (t *turns) begin(ctx context.Context, namespace string, most time.Duration) (done func(), err error) {
	q := t.enter(namespace)
	if q == nil {
		return nil, cache.ErrBusy
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	// The namespace's first: who has one of all turns waits for nothing.
	if err := take(ctx, q.now, timer.C); err != nil {
		t.leave(namespace)
		return nil, err
	}
	if err := take(ctx, t.now, timer.C); err != nil {
		<-q.now
		t.leave(namespace)
		return nil, err
	}
	return func() { <-t.now; <-q.now; t.leave(namespace) }, nil
}

// enter gives the queue of a namespace that has room for one more, or nil.
func (t *turns) enter(namespace string) *queue {
	t.mu.Lock()
	defer t.mu.Unlock()
	q := t.queues[namespace]
	if q == nil {
		q = &queue{now: make(chan struct{}, t.eachNow)}
	}
	if t.begun == t.most || q.begun == t.eachMost {
		return nil
	}
	t.begun++
	q.begun++
	t.queues[namespace] = q
	return q
}

func (t *turns) leave(namespace string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.begun--
	q := t.queues[namespace]
	if q.begun--; q.begun == 0 {
		delete(t.queues, namespace)
	}
}

// take takes a turn that is free, or waits for one.
func take(ctx context.Context, turn chan<- struct{}, late <-chan time.Time) error {
	select {
	case turn <- struct{}{}:
		return nil
	default:
	}
	select {
	case turn <- struct{}{}:
		return nil
	case <-late:
		return cache.ErrBusy
	case <-ctx.Done():
		return fmt.Errorf("waiting for other reads: %w", ctx.Err())
	}
}
