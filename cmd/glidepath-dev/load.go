package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/simulator/load"
)

// loadFlags turn simulate into a load.
type loadFlags struct {
	Namespaces  int           `help:"Make a load instead: app namespaces of its own to fill with runs."`
	Runs        int           `default:"10" help:"PipelineRuns in each namespace at a time, each with its TaskRuns."`
	Rate        float64       `default:"20" help:"Changes a second in all."`
	ObjectBytes int           `default:"4096" help:"About how large an object is as JSON."`
	Workers     int           `default:"8" help:"Requests under way at once."`
	Time        time.Duration `help:"How long to go on; until interrupted by default."`
	Keep        bool          `help:"Leave what was made; a later load with the same seed removes it."`
}

const (
	reportEvery = 10 * time.Second
	removeTime  = 2 * time.Minute
)

// run makes runs change until the time is over or ctx ends, then removes them.
func (f loadFlags) run(ctx context.Context, cfg *rest.Config, seed uint64) (err error) {
	l, err := load.New(load.Config{
		REST: cfg, Namespaces: f.Namespaces, Runs: f.Runs, Rate: f.Rate, ObjectBytes: f.ObjectBytes, Workers: f.Workers, Seed: seed,
		Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("process", "load"),
	})
	if err != nil {
		return err
	}
	if !f.Keep {
		defer func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTime)
			defer cancel()
			err = errors.Join(err, l.Remove(ctx))
		}()
	}
	if err := l.Prepare(ctx); err != nil {
		return err
	}
	apps := l.Apps()
	fmt.Printf("%d runs in %d apps, %s to %s\n", f.Namespaces*f.Runs, f.Namespaces, apps[0], apps[len(apps)-1])
	if f.Time > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.Time)
		defer cancel()
	}
	reported := make(chan struct{})
	ctx, stop := context.WithCancel(ctx)
	go func() { defer close(reported); report(ctx, l) }()
	err = l.Run(ctx)
	stop()
	<-reported
	fmt.Println(l.Stats())
	return err
}

// report prints how it goes until ctx ends.
func report(ctx context.Context, l *load.Load) {
	ticker := time.NewTicker(reportEvery)
	defer ticker.Stop()
	last := l.Stats().Changes
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			now := l.Stats()
			fmt.Printf("%.1f changes a second (%d conflicts, %d errors so far)\n",
				float64(now.Changes-last)/reportEvery.Seconds(), now.Conflicts, now.Errors)
			last = now.Changes
		}
	}
}
