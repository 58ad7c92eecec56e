// Package steps is what tests have happen to the processes of a gateway, one thing after the other.
package steps

import (
	"context"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/devenv/process"
)

// Step is one thing that happens. It returns when it has.
type Step func(context.Context) error

// Kill ends processes at once, as a crash would.
func Kill(all ...*process.Process) Step {
	return each(all, func(_ context.Context, p *process.Process) error { p.Kill(); return nil })
}

// Restart starts processes again, and waits until they are ready.
func Restart(all ...*process.Process) Step {
	return each(all, func(ctx context.Context, p *process.Process) error { return p.Restart(ctx) })
}

// Pause has processes stand still.
func Pause(all ...*process.Process) Step {
	return each(all, func(_ context.Context, p *process.Process) error { p.Pause(); return nil })
}

// Resume has processes that stand still go on.
func Resume(all ...*process.Process) Step {
	return each(all, func(_ context.Context, p *process.Process) error { p.Resume(); return nil })
}

// Update ends a process as an update does, and starts it again.
func Update(p *process.Process) Step {
	return func(ctx context.Context) error {
		p.Signal(syscall.SIGTERM)
		select {
		case <-p.Done():
		case <-ctx.Done():
			return ctx.Err()
		}
		return p.Restart(ctx)
	}
}

// Both has several things happen, one right after the other.
func Both(all ...Step) Step {
	return func(ctx context.Context) error {
		for _, s := range all {
			if err := s(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

func each(all []*process.Process, do func(context.Context, *process.Process) error) Step {
	return func(ctx context.Context) error {
		for _, p := range all {
			if err := do(ctx, p); err != nil {
				return err
			}
		}
		return nil
	}
}

// Redis does something with a Redis, given its URL.
func Redis(url string, do func(ctx context.Context, c *redis.Client) error) Step {
	return func(ctx context.Context) error {
		opts, err := redis.ParseURL(url)
		if err != nil {
			return fmt.Errorf("reading the URL of a Redis: %w", err)
		}
		c := redis.NewClient(opts)
		defer func() { _ = c.Close() }()
		return do(ctx, c)
	}
}

// Flush has a Redis forget everything.
func Flush(url string) Step {
	return Redis(url, func(ctx context.Context, c *redis.Client) error { return c.FlushAll(ctx).Err() })
}

// Fill leaves a Redis no memory to write to, and Drain gives it back.
func Fill(url string) Step { return memory(url, "1") }

// Drain ends Fill.
func Drain(url string) Step { return memory(url, "0") }

func memory(url, most string) Step {
	return Redis(url, func(ctx context.Context, c *redis.Client) error { return c.ConfigSet(ctx, "maxmemory", most).Err() })
}

// Within waits until something is so, for some time at most.
func Within(t testing.TB, most time.Duration, what string, so func() error) {
	t.Helper()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	end := time.Now().Add(most)
	for err := so(); err != nil; err = so() {
		if time.Now().After(end) {
			t.Fatalf("waited in vain until %s: %v", what, err)
		}
		<-tick.C
	}
}
