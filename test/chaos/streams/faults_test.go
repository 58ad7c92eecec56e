package streams_test

import (
	"context"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/devenv/process"
)

// fault is what happens to the parts of a gateway while the cluster changes and viewers look.
type fault struct {
	name string
	// steps are what happens. After each the cluster changes for a while; where it cannot, the step lasts for outage.
	steps []step
	// coarse says that what replicas know of the cluster may have to be read anew, so that viewers may be spared what came
	// in between.
	coarse bool
	// asleep has the drowsy sleep as long as it takes.
	asleep bool
}

type step func(context.Context) error

// outage is how long the cluster is away.
const outage = 2 * time.Second

func kill(all ...*process.Process) step {
	return each(all, func(_ context.Context, p *process.Process) error { p.Kill(); return nil })
}

func restart(all ...*process.Process) step {
	return each(all, func(ctx context.Context, p *process.Process) error { return p.Restart(ctx) })
}

func pause(all ...*process.Process) step {
	return each(all, func(_ context.Context, p *process.Process) error { p.Pause(); return nil })
}

func resume(all ...*process.Process) step {
	return each(all, func(_ context.Context, p *process.Process) error { p.Resume(); return nil })
}

// update ends a process as an update does, and starts it again.
func update(p *process.Process) step {
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

// both has two things happen, one right after the other.
func both(all ...step) step {
	return func(ctx context.Context) error {
		for _, s := range all {
			if err := s(ctx); err != nil {
				return err
			}
		}
		return nil
	}
}

func each(all []*process.Process, do func(context.Context, *process.Process) error) step {
	return func(ctx context.Context) error {
		for _, p := range all {
			if err := do(ctx, p); err != nil {
				return err
			}
		}
		return nil
	}
}

// flush has a Redis forget everything.
func flush(url string) step {
	return func(ctx context.Context) error {
		opts, err := redis.ParseURL(url)
		if err != nil {
			return err
		}
		c := redis.NewClient(opts)
		defer func() { _ = c.Close() }()
		return c.FlushAll(ctx).Err()
	}
}

// restartAPIServer starts it again. What is not ready is no endpoint of a cluster's API server: until it has read the rights, it
// refuses everybody.
func (w *world) restartAPIServer(ctx context.Context) error {
	w.gw.Faults.Down()
	if err := apiServer.Process.Restart(ctx); err != nil {
		return err
	}
	return w.gw.Faults.Up()
}
