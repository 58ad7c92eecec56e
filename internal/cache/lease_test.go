package cache

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/devenv/devtest"
)

const leaseKey = "glidepath:1:test:{lease:work}"

func newLease(t testing.TB, r *Redis, life, rest time.Duration) *Lease {
	t.Helper()
	l, err := NewLease(LeaseConfig{Redis: r, Service: "test", Name: "work", Life: life, Rest: rest, Patience: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// anyRedis runs a test with every kind of Redis there is.
func anyRedis(t *testing.T, check func(t *testing.T, open func() *Redis, client *redis.Client)) {
	everyRedis(t, check)
	t.Run("cluster", func(t *testing.T) {
		url, admin := cluster(t)
		check(t, func() *Redis { return openRedis(t, url+"?addr="+admin.Options().Addr) }, admin)
	})
}

func TestWorkIsDoneByOneReplica(t *testing.T) {
	anyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		var done, at atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			l := newLease(t, open(), 10*time.Second, time.Minute)
			all.Go(func() {
				err := l.Do(t.Context(), func(context.Context) error {
					if at.Add(1) > 1 {
						t.Error("two are at it")
					}
					done.Add(1)
					at.Add(-1)
					return nil
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if done.Load() != 1 {
			t.Errorf("it was done %d times", done.Load())
		}
		if left, err := client.PTTL(t.Context(), leaseKey).Result(); err != nil || left <= 0 || left > time.Minute {
			t.Errorf("nobody does it again for %s, %v", left, err)
		}
		// And then it is done again.
		if err := client.Del(t.Context(), leaseKey).Err(); err != nil {
			t.Fatal(err)
		}
		if err := newLease(t, open(), time.Second, time.Second).Do(t.Context(), func(context.Context) error { done.Add(1); return nil }); err != nil || done.Load() != 2 {
			t.Errorf("later: %v", err)
		}
	})
}

func TestWorkThatFailedIsAnothersToDo(t *testing.T) {
	anyRedis(t, func(t *testing.T, open func() *Redis, _ *redis.Client) {
		broken := errors.New("broken")
		if err := newLease(t, open(), time.Minute, time.Minute).Do(t.Context(), func(context.Context) error { return broken }); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		ctx, stop := context.WithCancel(t.Context())
		err := newLease(t, open(), time.Minute, time.Minute).Do(ctx, func(ctx context.Context) error {
			stop()
			<-ctx.Done()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
		did := false
		if err := newLease(t, open(), time.Minute, time.Minute).Do(t.Context(), func(context.Context) error { did = true; return nil }); err != nil || !did {
			t.Errorf("the next one: %v, %v", did, err)
		}
	})
}

func TestALeaseIsRenewedWhileItsWorkIsDone(t *testing.T) {
	const life = 3 * time.Second
	m := startMini(t)
	err := newLease(t, m.open(t), life, time.Minute).Do(t.Context(), func(ctx context.Context) error {
		// No time goes by in miniredis but by this.
		m.FastForward(life - time.Millisecond)
		eventually(t, "the lease's life to begin anew", func() bool { return m.TTL(leaseKey) > life/2 })
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}

func TestALeaseWhoseHolderIsGoneIsTakenByAnother(t *testing.T) {
	for name, leave := range map[string]func(context.Context, *redis.Client) error{
		"a holder that died": func(ctx context.Context, c *redis.Client) error {
			return c.Set(ctx, leaseKey, "dead", 200*time.Millisecond).Err()
		},
		"what never ends":                  func(ctx context.Context, c *redis.Client) error { return c.Set(ctx, leaseKey, "for ever", 0).Err() },
		"what ends later than any":         func(ctx context.Context, c *redis.Client) error { return c.Set(ctx, leaseKey, "long", time.Hour).Err() },
		"what is done for ever":            func(ctx context.Context, c *redis.Client) error { return c.Set(ctx, leaseKey, "done", 0).Err() },
		"what is done for longer than any": func(ctx context.Context, c *redis.Client) error { return c.Set(ctx, leaseKey, "done", time.Hour).Err() },
		"a list":                           func(ctx context.Context, c *redis.Client) error { return c.RPush(ctx, leaseKey, "x").Err() },
	} {
		t.Run(name, func(t *testing.T) {
			everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
				r := open()
				if name == "a holder that died" && client.Info(t.Context(), "server").Err() != nil {
					t.Skip("in miniredis nothing ends by itself; the real one runs this")
				}
				if err := leave(t.Context(), client); err != nil {
					t.Fatal(err)
				}
				did := false
				if err := newLease(t, r, time.Second, time.Minute).Do(t.Context(), func(context.Context) error { did = true; return nil }); err != nil || !did {
					t.Errorf("done: %v, %v", did, err)
				}
			})
		})
	}
}

// TestAHolderThatWasOvertakenNoticesAndFinishesNothing: it neither renews, gives
// up nor finishes what is another's.
func TestAHolderThatWasOvertakenNoticesAndFinishesNothing(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		r := open()
		for name, work := range map[string]func(ctx context.Context) error{
			"and stops":       func(ctx context.Context) error { <-ctx.Done(); return context.Cause(ctx) },
			"and goes on":     func(ctx context.Context) error { <-ctx.Done(); return nil },
			"and is finished": func(context.Context) error { return nil },
		} {
			t.Run(name, func(t *testing.T) {
				if err := client.Del(t.Context(), leaseKey).Err(); err != nil {
					t.Fatal(err)
				}
				times := 0
				err := newLease(t, r, 600*time.Millisecond, time.Minute).Do(t.Context(), func(ctx context.Context) error {
					times++
					if err := client.Set(ctx, leaseKey, "another", 500*time.Millisecond).Err(); err != nil {
						t.Error(err)
					}
					err := work(ctx)
					// The other one is not disturbed, and does it.
					if holder, _ := client.Get(t.Context(), leaseKey).Result(); holder != "another" && holder != "" {
						t.Errorf("the lease is held by %q", holder)
					}
					if err := client.Set(t.Context(), leaseKey, "done", time.Minute).Err(); err != nil {
						t.Error(err)
					}
					return err
				})
				if err != nil || times != 1 {
					t.Errorf("it is done %d times here: %v", times, err)
				}
				if holder, err := client.Get(t.Context(), leaseKey).Result(); err != nil || holder != "done" {
					t.Errorf("the lease is held by %q, %v", holder, err)
				}
			})
		}
	})
}

func TestALeaseEndsWithRedis(t *testing.T) {
	real := devtest.Redis(t)
	r := openRedis(t, real.URL)
	eventually(t, "Redis to be used", r.Up)
	var times atomic.Int32
	done := make(chan error)
	ended := make(chan error, 1)
	go func() {
		done <- newLease(t, r, time.Second, time.Minute).Do(t.Context(), func(ctx context.Context) error {
			if times.Add(1) > 1 {
				return nil
			}
			real.Process.Kill()
			<-ctx.Done()
			ended <- context.Cause(ctx)
			return ctx.Err()
		})
	}()
	if err := <-ended; !errors.Is(err, ErrLost) {
		t.Errorf("the work ended with %v", err)
	}
	if err := real.Process.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-done; err != nil || times.Load() != 2 {
		t.Errorf("after Redis came back it was done %d times in all: %v", times.Load(), err)
	}
}

func TestNobodyHoldsALeaseWithoutRedis(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	err := newLease(t, awayRedis(t), time.Second, time.Second).Do(ctx, func(context.Context) error {
		t.Error("it is done")
		return nil
	})
	if !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	if _, err := NewLease(LeaseConfig{Service: "test", Name: "work", Life: time.Second, Rest: time.Second, Patience: time.Second}); err == nil {
		t.Error("a lease is made without a Redis")
	}
	if _, err := NewLease(LeaseConfig{Redis: awayRedis(t), Service: "test", Name: "work", Life: time.Second, Rest: time.Second}); err == nil {
		t.Error("a lease is made that has no patience")
	}
}

func TestWorkIsDoneAloneWhenRedisIsAwayForLong(t *testing.T) {
	l := newLease(t, awayRedis(t), 50*time.Millisecond, time.Minute)
	l.patience = 100 * time.Millisecond
	failed, times := errors.New("failed"), 0
	if err := l.Do(t.Context(), func(context.Context) error { times++; return failed }); !errors.Is(err, failed) || times != 1 {
		t.Errorf("it was done %d times: %v", times, err)
	}
}
