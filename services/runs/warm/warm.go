// Package warm owns what happens before anybody asks: after a start, one replica
// reads what callers will want first of every app, one app at a time. It is in
// nobody's way: it waits while callers have reads under way, no caller and
// no probe waits for it, and what it cannot read is left for the first who asks.
package warm

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/calls"
)

// How long to wait before the apps are listed again after that has failed.
const (
	firstRetry = time.Second
	lastRetry  = time.Minute
)

// Config says how to warm. All but Lease is required.
type Config struct {
	// Lease has one replica do the work, and returns when it was done, by this
	// one or another (cache.Lease.Do). Nil: this replica shares with no other.
	Lease func(ctx context.Context, work func(ctx context.Context) error) error
	// Apps lists all apps' namespaces.
	Apps func(ctx context.Context) ([]calls.Scope, error)
	// Read has one app's runs read into the cache.
	Read func(ctx context.Context, app calls.Scope) error
	// Quiet waits until no caller's read is under way.
	Quiet func(ctx context.Context) error
	// Patience is how long it lets callers go first before each app, so that
	// callers who never pause do not keep it from ever coming to an end.
	Patience time.Duration
	// Metrics counts apps.
	Metrics prometheus.Registerer
}

// Warmer warms once.
type Warmer struct {
	cfg  Config
	apps *prometheus.CounterVec
}

// New gives a warmer. Run does the work.
func New(cfg Config) (*Warmer, error) {
	if cfg.Apps == nil || cfg.Read == nil || cfg.Quiet == nil || cfg.Patience <= 0 || cfg.Metrics == nil {
		return nil, errors.New("making a warmer: a part is missing")
	}
	w := &Warmer{cfg: cfg, apps: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_runs_warmed_apps_total",
		Help: "Apps whose last days were read before anybody asked, by outcome: ok or error.",
	}, []string{"outcome"})}
	for _, outcome := range []string{"ok", "error"} {
		w.apps.WithLabelValues(outcome)
	}
	if err := cfg.Metrics.Register(w.apps); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return w, nil
}

// Run warms, and returns when that was done, by this replica or another, or when
// ctx ends. That of a nil Warmer does nothing.
func (w *Warmer) Run(ctx context.Context) {
	if w == nil {
		return
	}
	lease := w.cfg.Lease
	if lease == nil {
		lease = func(ctx context.Context, work func(ctx context.Context) error) error { return work(ctx) }
	}
	if err := lease(ctx, w.all); err != nil && ctx.Err() == nil {
		slog.WarnContext(ctx, "the cache was not warmed", "error", err)
	}
}

// all reads one app after the other.
func (w *Warmer) all(ctx context.Context) error {
	began := time.Now()
	apps, err := w.list(ctx)
	if err != nil {
		return err
	}
	failed := 0
	for _, app := range apps {
		if err := w.one(ctx, app); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			failed++
			w.apps.WithLabelValues("error").Inc()
			slog.DebugContext(ctx, "an app was not warmed", "namespace", app.Namespace, "error", err)
			continue
		}
		w.apps.WithLabelValues("ok").Inc()
	}
	slog.InfoContext(ctx, "the cache was warmed", "apps", len(apps), "failed", failed, "took", time.Since(began).Round(time.Millisecond).String())
	return nil
}

// list lists the apps, however long the cluster is away.
func (w *Warmer) list(ctx context.Context) ([]calls.Scope, error) {
	for pause := firstRetry; ; pause = min(2*pause, lastRetry) {
		apps, err := w.cfg.Apps(ctx)
		if err == nil {
			return apps, nil
		}
		slog.WarnContext(ctx, "the apps to warm could not be listed", "error", err)
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// one reads one app when it is quiet.
func (w *Warmer) one(ctx context.Context, app calls.Scope) error {
	patient, cancel := context.WithTimeout(ctx, w.cfg.Patience)
	err := w.cfg.Quiet(patient)
	cancel()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return w.cfg.Read(ctx, app)
}
