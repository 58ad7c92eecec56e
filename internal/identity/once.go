package identity

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Once remembers which identities of writes were used, for every replica of a
// backend. It is safe for concurrent use.
type Once interface {
	// First says whether id was not used before, and remembers that it is now,
	// until end at least. Of any number of calls with one id, one is first. An
	// error means that nobody knows, and then the id may count as used.
	First(ctx context.Context, id string, end time.Time) (bool, error)
}

// maxUsed bounds the writes that a replica remembers: about a thousand a second.
const maxUsed = 1 << 16

var errTooManyUsed = errors.New("too many writes are remembered already")

// used is the Once of one process. Its zero value remembers nothing yet.
type used struct {
	mu    sync.Mutex
	ids   map[string]struct{}
	queue []usedID // in the order of use
}

type usedID struct {
	id  string
	end time.Time
}

// First never waits. What is over goes first come, first gone: identities end
// about as long after their use as each other, so that little stays too long.
func (u *used) First(_ context.Context, id string, end time.Time) (bool, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	now, over := time.Now(), 0
	for over < len(u.queue) && now.After(u.queue[over].end) {
		delete(u.ids, u.queue[over].id)
		over++
	}
	u.queue = u.queue[over:]
	if _, ok := u.ids[id]; ok {
		return false, nil
	}
	if len(u.ids) >= maxUsed {
		return false, errTooManyUsed
	}
	if u.ids == nil {
		u.ids = map[string]struct{}{}
	}
	u.ids[id] = struct{}{}
	u.queue = append(u.queue, usedID{id: id, end: end})
	return true, nil
}

var errUsed = errors.New("the identity of a write was used before")

// use spends the identity of a write. The process's own memory is asked first:
// whoever can take something away from a shared one cannot take that.
func (v *Verifier) use(ctx context.Context, c *Claims) error {
	// A replica whose clock is behind takes it for a Leeway longer than one whose clock is right, and the one that remembers may be
	// ahead by as much.
	end := c.ExpiresAt.Add(3 * Leeway)
	for _, once := range []Once{&v.used, v.cfg.Shared} {
		if once == nil {
			continue
		}
		first, err := once.First(ctx, c.ID, end)
		if err != nil {
			return fmt.Errorf("telling whether an identity was used before: %w", err)
		}
		if !first {
			return errUsed
		}
	}
	return nil
}
