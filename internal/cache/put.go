package cache

import (
	"context"
	"errors"
	"time"
)

// errLarge says that a value is larger than all that is kept in this process.
var errLarge = errors.New("the value is too large to be kept")

// Put keeps a value of key that was come by on the way to another, as if
// GetLasting had read it just now: it must be of the kind that does not change. A value that
// is there already, or being read, stays. It goes where all replicas find it,
// and not into this process's memory too, which is for what is asked for; that
// is where it goes while there is no Redis. An error says that it is kept nowhere.
func (c *Cache[T]) Put(ctx context.Context, key string, life time.Duration, value T) error {
	if r := c.cfg.Redis; r != nil {
		found, err := r.look(ctx, c.vault.key(key), anyAge, "", 0)
		if err == nil {
			if found.lock == "" {
				return nil
			}
			return c.publish(ctx, r, key, found, value, life, true)
		}
		if !errors.Is(err, errAway) {
			return err // it was not quick, and no call needs it
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.closed:
		return ErrClosed
	case c.flights[key] != nil || c.local.get(key) != nil:
		return nil
	case int64(c.cfg.Codec.Size(value)) > c.cfg.LocalBytes:
		return errLarge
	}
	now := time.Now()
	c.keep(key, value, now, now.Add(life))
	return nil
}
