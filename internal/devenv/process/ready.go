package process

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	probeEvery   = 25 * time.Millisecond
	probeTimeout = 2 * time.Second
)

// awaitReady probes until the process is ready, has ended, or time is up.
func (p *Process) awaitReady(ctx context.Context, r *run) error {
	if p.spec.Ready == nil {
		return nil
	}
	limit := orDefault(p.spec.ReadyTimeout, defaultReadyTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not ready within %s", limit))
	defer cancel()
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	var last error
	for {
		if last = probe(ctx, p.spec.Ready); last == nil {
			return nil
		}
		select {
		case <-r.done:
			return fmt.Errorf("it ended before it was ready (%s)", outcome(r.err))
		case <-ctx.Done():
			return fmt.Errorf("%w (last probe: %w)", context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

func probe(ctx context.Context, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, probeTimeout, errors.New("no answer"))
	defer cancel()
	return ready(ctx)
}

func outcome(err error) string {
	if err == nil {
		return "exit status 0"
	}
	return err.Error()
}
