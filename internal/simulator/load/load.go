package load

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/simulator/life"
)

// Load is a fleet of runs that change. Prepare it once, then Run it as often as wanted, and Remove it.
type Load struct {
	cfg    Config
	client dynamic.Interface
	rules  life.Rules
	runs   []*run
	turns  *turns
	count  counts
}

// New checks the configuration, all faults together; it starts nothing.
func New(cfg Config) (*Load, error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	unlimited := rest.CopyConfig(cfg.REST)
	unlimited.QPS = -1 // bounded by the workers
	unlimited.UserAgent = "glidepath-load"
	client, err := dynamic.NewForConfig(unlimited)
	if err != nil {
		return nil, fmt.Errorf("load: %w", err)
	}
	return newLoad(cfg, client), nil
}

func newLoad(cfg Config, client dynamic.Interface) *Load {
	l := &Load{cfg: cfg.withDefaults(), client: client}
	// Without a pace of their own all steps are due at once: the load decides when they happen.
	l.rules = life.Rules{Seed: l.cfg.Seed, Catalog: life.SampleCatalog()}
	l.turns = newTurns(l.cfg.Clock, l.cfg.Rate)
	for slot := range l.cfg.Runs {
		for _, namespace := range l.Namespaces() {
			l.runs = append(l.runs, &run{load: l, namespace: namespace, slot: slot})
		}
	}
	return l
}

// Apps are the apps of the load, as a caller of the gateway names them.
func (l *Load) Apps() []string {
	apps := make([]string, l.cfg.Namespaces)
	for i := range apps {
		apps[i] = fmt.Sprintf("load-%d-%03d", l.cfg.Seed, i+1)
	}
	return apps
}

// Namespaces are those of Apps, in the same order.
func (l *Load) Namespaces() []string {
	namespaces := l.Apps()
	for i, app := range namespaces {
		namespaces[i] = "app-" + app + "-cicd"
	}
	return namespaces
}

// Prepare makes the namespaces and the runs, each somewhere in its life, as fast as the workers can; Stats do not count
// it. What an earlier load with the same seed left is removed first. After an error what was made stays: Remove it.
func (l *Load) Prepare(ctx context.Context) error {
	if err := l.makeNamespaces(ctx); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(l.cfg.Workers)
	for _, r := range l.runs {
		group.Go(func() error {
			return l.again(ctx, r, func() error {
				if r.world != nil {
					return nil // an earlier try got that far
				}
				return r.begin(ctx, unpaced, true)
			})
		})
	}
	if err := group.Wait(); err != nil {
		return fmt.Errorf("load: make runs: %w", err)
	}
	l.count.reset()
	return nil
}

// Run changes the runs at the pace until ctx ends, and returns when nothing of it is under way any more.
func (l *Load) Run(ctx context.Context) error {
	began := l.cfg.Clock.Now()
	defer func() { l.count.elapsed.Add(int64(l.cfg.Clock.Since(began))) }()
	l.turns.reset()
	ready := make(chan *run, len(l.runs))
	for _, r := range l.runs {
		ready <- r
	}
	group, ctx := errgroup.WithContext(ctx)
	for range l.cfg.Workers {
		group.Go(func() error {
			for {
				select {
				case <-ctx.Done():
					return nil
				case r := <-ready:
					if err := l.again(ctx, r, func() error { return r.live(ctx) }); err != nil {
						return err
					}
					ready <- r // its place is free
				}
			}
		})
	}
	if err := group.Wait(); err != nil && ctx.Err() == nil {
		return fmt.Errorf("load: %w", err)
	}
	return nil
}

// Stats may be called at any time; while Run runs, Elapsed and Rate are of earlier calls of Run.
func (l *Load) Stats() Stats { return l.count.stats() }

const (
	firstPause = 50 * time.Millisecond
	lastPause  = 5 * time.Second
)

// again tries until it succeeds or ctx ends, which is no error. What failed may have happened all the same, so before
// anything else the run is read anew: nothing is lost by an answer that never came, and nothing of somebody else's is
// overwritten.
func (l *Load) again(ctx context.Context, r *run, try func() error) error {
	for pause := firstPause; ; pause = min(2*pause, lastPause) {
		err := r.current(ctx)
		if err == nil {
			err = try()
		}
		if err == nil {
			return nil
		}
		r.stale = true
		if errors.Is(err, errForeign) {
			return err
		}
		if ctx.Err() != nil {
			return nil //nolint:nilerr // the end of the load is what the error is about
		}
		l.count.failed(err)
		l.cfg.Logger.Warn("a change failed, trying again", "namespace", r.namespace, "run", r.name, "error", err)
		if !l.sleep(ctx, pause) {
			return nil
		}
	}
}

func (l *Load) sleep(ctx context.Context, d time.Duration) bool {
	timer := l.cfg.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C():
		return true
	}
}

// label is the value of LabelLoad on all that this load makes.
func (l *Load) label() string { return strconv.FormatUint(l.cfg.Seed, 10) }
