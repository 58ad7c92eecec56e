package process

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 10 * time.Second
	steady       = time.Minute // a process that ran this long starts again with the first backoff
)

// Keep restarts each process that ends by itself, with growing pauses while that keeps happening. The function it returns
// ends the keeping, not the processes, and is to be called before they are stopped.
func Keep(processes ...*Process) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, p := range processes {
		group.Go(func() { keep(ctx, p) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}

func keep(ctx context.Context, p *Process) {
	pause, begun := firstBackoff, time.Now()
	for {
		select {
		case <-ctx.Done():
			return
		case <-p.Done():
		}
		if time.Since(begun) > steady {
			pause = firstBackoff
		}
		slog.Warn("a process ended and is started again", "name", p.Name(), "pause", pause)
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause, begun = min(2*pause, lastBackoff), time.Now()
		if err := p.Restart(ctx); err != nil && ctx.Err() == nil {
			slog.Error("a process could not be started again", "name", p.Name(), "error", err)
		}
	}
}
