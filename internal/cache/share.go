package cache

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"
)

// How long to wait between two looks at a value that another replica reads:
// soon at first, for quick sources.
const (
	firstLook = 10 * time.Millisecond
	lastLook  = 100 * time.Millisecond
)

// maxUnreadable is how many values that do not open are looked at in one call.
// One is enough, unless somebody keeps putting others there.
const maxUnreadable = 3

// share gets the value with the other replicas: what one of them read, or, if
// none of them is at it, by reading it for all. That another is at it is only
// Redis's word, which anyone who can write there can give: after ShareTime this
// process reads for itself.
func (f *flight[T]) share(ctx context.Context, r *Redis) {
	started, unreadable, faults := time.Now(), "", 0
	for look := firstLook; ; look = min(2*look, lastLook) {
		// A value is as good as one that was there when this began.
		before := time.Now()
		if before.Sub(started) > f.cache.cfg.ShareTime {
			f.alone(ctx)
			return
		}
		found, err := r.acquire(ctx, f.cache.vault.key(f.key), f.maxAge+before.Sub(started), unreadable)
		switch {
		case err != nil:
			f.alone(ctx)
			return
		case found.lock != "":
			f.readForAll(ctx, r, found, before)
			return
		case found.sealed != nil:
			if f.take(ctx, found, before) {
				f.land()
				return
			}
			if faults++; faults == maxUnreadable {
				f.alone(ctx)
				return
			}
			unreadable, look = found.stamp, 0
		default:
			if err := wait(ctx, look); err != nil {
				f.err = fmt.Errorf("waiting for another replica's read: %w", err)
				f.land()
				return
			}
		}
	}
}

// alone reads without the other replicas, unless the cache is closed.
func (f *flight[T]) alone(ctx context.Context) {
	if err := ctx.Err(); err != nil {
		f.err = fmt.Errorf("waiting for another replica's read: %w", err)
	} else {
		f.read(ctx, time.Now())
	}
	f.land()
}

// take makes the found value the outcome, if it opens.
func (f *flight[T]) take(ctx context.Context, found found, before time.Time) bool {
	value, err := f.cache.vault.open(f.key, found)
	left, forever, odd := found.left()
	if err = errors.Join(err, odd); err != nil {
		f.cache.metrics.unreadable.Inc()
		slog.WarnContext(ctx, "a cached value counts as absent", "cache", f.cache.cfg.Name, "error", err)
		return false
	}
	f.value, f.began, f.result = value, before.Add(-found.age), resultShared
	f.until = before.Add(left)
	if forever {
		f.until = f.began.Add(f.maxAge)
	}
	return true
}

// readForAll reads while it holds the lock, answers those who wait here, and
// then puts the value where the other replicas find it.
func (f *flight[T]) readForAll(ctx context.Context, r *Redis, found found, before time.Time) {
	key, locked := f.cache.vault.key(f.key), time.Now()
	stop := r.keep(ctx, key, found.lock)
	f.read(ctx, before)
	took := time.Since(locked)
	f.land()
	stop()

	// What follows must happen even if the time for reading is over.
	ctx = context.WithoutCancel(ctx)
	if f.err != nil {
		r.release(ctx, key, found.lock)
		return
	}
	stays := f.maxAge
	if f.life > 0 {
		stays = took + f.life
	}
	if err := f.cache.publish(ctx, r, f.key, found, f.value, stays, f.life > 0); err != nil {
		slog.WarnContext(ctx, "a value is not shared", "cache", f.cache.cfg.Name, "error", err)
	}
}

// publish puts a value that was read under a lock where all replicas find it,
// for so long from when its reading began, and gives the lock up. Unless it
// lasts, it may be too old before that for who asks.
func (c *Cache[T]) publish(ctx context.Context, r *Redis, name string, found found, value T, stays time.Duration, lasts bool) error {
	key := c.vault.key(name)
	stamp, err := found.stamp+noEnd, error(nil)
	if lasts {
		stamp, err = found.until(stays)
	}
	var sealed []byte
	if err == nil {
		sealed, err = c.vault.seal(name, stamp, value)
	}
	if err != nil {
		r.release(ctx, key, found.lock)
		return fmt.Errorf("sealing a value: %w", err)
	}
	return r.store(ctx, key, found.lock, stamp, sealed, stays)
}

// wait waits about d, so that replicas do not look all at once.
func wait(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d/2 + rand.N(d+1))
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
