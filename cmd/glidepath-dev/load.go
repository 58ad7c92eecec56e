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

// loadFlags turn simulate into a load. What was not said is nil.
type loadFlags struct {
	Namespaces   int            `help:"Make a load instead: app namespaces of its own to fill with runs."`
	Runs         *int           `help:"PipelineRuns in each namespace at a time, each with its TaskRuns; 10 by default."`
	Rate         *float64       `help:"Changes a second in all; 20 by default."`
	ObjectBytes  *int           `help:"About how large an object is as JSON; 4096 by default."`
	Workers      *int           `help:"Requests under way at once; 8 by default."`
	Time         *time.Duration `help:"How long to go on; until interrupted by default."`
	Keep         bool           `help:"Leave what was made; a later load with the same seed removes it."`
	NoController bool           `help:"Nothing on the cluster sees deleted namespaces off, as where an API server runs alone: the load does it."`
}

// validate refuses what would have no effect.
func (f loadFlags) validate() error {
	if f.Namespaces != 0 {
		return nil
	}
	if f != (loadFlags{}) {
		return errors.New("--load-… says something of a load, and without --load-namespaces there is none")
	}
	return nil
}

// given is what was said, or else what is so by default.
func given[T any](said *T, otherwise T) T {
	if said == nil {
		return otherwise
	}
	return *said
}

const (
	reportEvery = 10 * time.Second
	removeTime  = 10 * time.Minute
)

// run makes runs change until the time is over or ctx ends, then removes them.
func (f loadFlags) run(ctx context.Context, cfg *rest.Config, seed uint64) (err error) {
	runs := given(f.Runs, 10)
	l, err := load.New(load.Config{
		REST: cfg, Namespaces: f.Namespaces, Runs: runs, Rate: given(f.Rate, 20), ObjectBytes: given(f.ObjectBytes, 0),
		Workers: given(f.Workers, 0), Seed: seed, NoController: f.NoController,
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
	fmt.Printf("%d runs in %d apps, %s to %s\n", f.Namespaces*runs, f.Namespaces, apps[0], apps[len(apps)-1])
	if f.Time != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, *f.Time)
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
