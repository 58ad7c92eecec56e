package jwks

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/semaphore"

	"hangar.io/glidepath/authz/authn"
)

// maxTurns bounds those that wait for a turn.
const maxTurns = 512

// shares are the turns of an issuer's signatures. Those for writes have turns of
// their own, which no flood of reads takes.
type shares struct{ reads, writes *turns }

func newShares() shares {
	cores := runtime.GOMAXPROCS(0)
	return shares{reads: newTurns(cores), writes: newTurns(cores)}
}

func (s shares) of(p authn.Purpose) *turns {
	if p == authn.ForRead {
		return s.reads
	}
	return s.writes
}

// turns bounds the signatures that are verified at once, which is the CPU that a
// flood of tokens takes. Turns are taken in the order of asking.
type turns struct {
	sem     *semaphore.Weighted
	waiting atomic.Int64
}

func newTurns(n int) *turns { return &turns{sem: semaphore.NewWeighted(int64(n))} }

// take waits for a turn, at most until ctx ends. Whoever gets nil gives it back.
func (t *turns) take(ctx context.Context) error {
	if t.sem.TryAcquire(1) {
		return nil
	}
	defer t.waiting.Add(-1)
	if t.waiting.Add(1) > maxTurns {
		return errors.New("too many signatures wait to be verified")
	}
	if err := t.sem.Acquire(ctx, 1); err != nil {
		return fmt.Errorf("waiting to verify a signature: %w", err)
	}
	return nil
}

func (t *turns) give() { t.sem.Release(1) }
