package renewal

import (
	"container/heap"
	"context"
	"time"
)

// followEpoch has every stream renewed soon after authz's epoch changes, which
// says that somebody is denied by list from now on.
func (k *Keeper) followEpoch(ctx context.Context) {
	known, failures, turns := "", 0, 0
	for ctx.Err() == nil {
		asked := time.Now()
		epoch, err := k.client.epoch(ctx, known)
		wait := time.Duration(0)
		switch {
		case err != nil:
			// The renewals themselves say that authz is away.
			wait = min(firstPause<<min(failures, 10), lastPause)
			wait = wait/2 + jitter(wait/2)
			failures++
		case epoch != known:
			known, failures = epoch, 0
			k.hurry()
			// Where several authz answer in turns whose lists differ, the epoch changes with each: then it comes to no more
			// than the renewals that there are anyway.
			wait = min(settled<<turns, Every)
			turns = min(turns+1, 4)
		default:
			failures, turns = 0, 0
			if time.Since(asked) < time.Second {
				wait = time.Second // an authz that ends holds nobody
			}
		}
		if wait > 0 && !pause(ctx, wait) {
			return
		}
	}
}

// pause waits, and says whether ctx let it.
func pause(ctx context.Context, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-t.C:
		return true
	}
}

// hurry makes the renewal of every stream due within urgent, but for those that
// are in line already.
func (k *Keeper) hurry() {
	k.mu.Lock()
	k.hurried = time.Now()
	for _, s := range k.streams {
		if at := k.hurried.Add(jitter(urgent)); s.due.After(at) {
			s.due = at
		}
	}
	heap.Init(&k.streams)
	k.mu.Unlock()
	k.poke()
}
