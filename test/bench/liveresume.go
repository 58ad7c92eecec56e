package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/parts"
	"hangar.io/glidepath/test/bench/view"
)

const rowLiveResume = "live_resume_ms"

const (
	missedChanges = 2000
	// comingBack is how many viewers come back, one after the other.
	comingBack = 10
)

// measureLiveResume has a viewer leave, makes changes that another keeps the replicas following, and has viewers come back
// with the id of the one that left: the time from the request to the last change, none missing and none doubled.
func measureLiveResume(ctx context.Context, w *World) ([]figures.Figure, error) {
	l, err := w.liveGateway(ctx)
	if err != nil {
		return nil, err
	}
	missed := missedChanges
	if w.options.Quick {
		missed = 2 * lookedObjects
	}
	// Those who stay, at every replica.
	stay, err := parts.Look(ctx, l.spec(view.Stream, 4*liveReplicas, 0))
	if err != nil {
		return nil, err
	}
	defer func() { _ = stay.Leave() }()
	left, err := parts.Look(ctx, l.spec(view.Stream, 1, 0))
	if err != nil {
		return nil, err
	}
	seen, err := left.End()
	if err != nil {
		return nil, err
	}
	spec := l.spec(view.Stream, 1, missed)
	spec.Headers["Last-Event-ID"], spec.Grace = seen.ID, time.Minute
	if _, err := l.change(ctx, missed, 0); err != nil {
		return nil, err
	}
	var took []float64
	for range w.runs(comingBack) {
		back, err := parts.Look(ctx, spec)
		if err != nil {
			return nil, err
		}
		report, err := back.End()
		if err != nil {
			return nil, fmt.Errorf("a viewer that came back: %w", err)
		}
		last := int64(0)
		for _, at := range report.Arrived {
			last = max(last, at[0])
		}
		took = append(took, milliseconds(time.Duration(last-report.Begun[0])))
	}
	if _, err := stay.End(); err != nil {
		return nil, errors.Join(errors.New("viewers that stayed"), err)
	}
	return []figures.Figure{
		{Name: rowLiveResume, Value: figures.Median(took)},
		{Name: rowLiveResume + "_worst", Value: slices.Max(took)},
		{Name: "live_resume_changes", Value: float64(missed)},
	}, nil
}
