package runs

import (
	"context"
	"fmt"
	"time"

	"hangar.io/glidepath/internal/cache"
)

// heavyReads is how many full lists a replica reads at once: each may take 64 MiB.
// heavyWaits is how many more wait for that, which keeps them from taking all that
// there may be of other reads.
const (
	heavyReads = 2
	heavyWaits = 32
)

// turns bounds what is done at once, and what waits to be.
type turns struct {
	all, now chan struct{}
}

func newTurns(atOnce, waiting int) *turns {
	return &turns{all: make(chan struct{}, atOnce+waiting), now: make(chan struct{}, atOnce)}
}

// begin waits its turn for so long. done ends it. Without one, because too many
// wait or for too long, it is cache.ErrBusy.
func (t *turns) begin(ctx context.Context, most time.Duration) (done func(), err error) {
	select {
	case t.all <- struct{}{}:
	default:
		return nil, cache.ErrBusy
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case t.now <- struct{}{}:
		return func() { <-t.now; <-t.all }, nil
	case <-timer.C:
		err = cache.ErrBusy
	case <-ctx.Done():
		err = fmt.Errorf("waiting for other reads: %w", ctx.Err())
	}
	<-t.all
	return nil, err
}
