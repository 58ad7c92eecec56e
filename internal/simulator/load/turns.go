package load

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"golang.org/x/time/rate"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/clock"
)

// errForeign says that something in the load's way is not the load's.
var errForeign = errors.New("not of this load")

// burst is the part of a second's changes that may be made up for at once after a moment in which none went through.
const burst = 0.05

// turns hands out the moments of the changes, evenly. It may be used concurrently, but for reset.
type turns struct {
	clock   clock.Clock
	rate    float64
	limiter *rate.Limiter
}

func newTurns(clock clock.Clock, perSecond float64) *turns {
	t := &turns{clock: clock, rate: perSecond}
	t.reset()
	return t
}

// reset forgets that nothing was asked for in a while.
func (t *turns) reset() { t.limiter = rate.NewLimiter(rate.Limit(t.rate), max(1, int(burst*t.rate))) }

// turn waits for the moment of a change.
type turn func(ctx context.Context) error

func unpaced(ctx context.Context) error { return ctx.Err() }

func (t *turns) wait(ctx context.Context) error {
	now := t.clock.Now()
	reserved := t.limiter.ReserveN(now, 1)
	timer := t.clock.NewTimer(reserved.DelayFrom(now))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		reserved.CancelAt(t.clock.Now())
		return ctx.Err()
	case <-timer.C():
		return nil
	}
}

// counts is what Stats are made of.
type counts struct {
	created, updated, removed, conflicts, errors atomic.Int64
	elapsed                                      atomic.Int64 // nanoseconds
}

// reset is for when nothing is under way.
func (c *counts) reset() {
	for _, counter := range []*atomic.Int64{&c.created, &c.updated, &c.removed, &c.conflicts, &c.errors, &c.elapsed} {
		counter.Store(0)
	}
}

func (c *counts) failed(err error) {
	if apierrors.IsConflict(err) {
		c.conflicts.Add(1)
		return
	}
	c.errors.Add(1)
}

func (c *counts) stats() Stats {
	s := Stats{
		Created: c.created.Load(), Updated: c.updated.Load(), Removed: c.removed.Load(),
		Conflicts: c.conflicts.Load(), Errors: c.errors.Load(), Elapsed: time.Duration(c.elapsed.Load()),
	}
	s.Changes = s.Created + s.Updated + s.Removed
	if s.Elapsed > 0 {
		s.Rate = float64(s.Changes) / s.Elapsed.Seconds()
	}
	return s
}
