package process

import (
	"context"
	"sync"
	"time"
)

const (
	firstBackoff = 100 * time.Millisecond
	lastBackoff  = 10 * time.Second
	steady       = time.Minute // a process that ran this long starts again with the first backoff
)

// Keep restarts each process that ends by itself, with growing pauses while that keeps happening. It calls report, from
// several goroutines, after each attempt: with nil when the process runs again. The function it returns ends the keeping, not the
// processes, and is to be called before they are stopped; the end of the context changes nothing.
func Keep(ctx context.Context, report func(p *Process, err error), processes ...*Process) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	for _, p := range processes {
		group.Go(func() { keep(ctx, p, report) })
	}
	return func() {
		cancel()
		group.Wait()
	}
}

func keep(ctx context.Context, p *Process, report func(*Process, error)) {
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
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		pause, begun = min(2*pause, lastBackoff), time.Now()
		err := p.Restart(ctx)
		if ctx.Err() != nil {
			return
		}
		report(p, err)
	}
}
