package bench

import (
	"context"
	"errors"
	"time"

	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/parts"
	"hangar.io/glidepath/test/bench/view"
)

const (
	rowLiveStream      = "live_stream_kb"
	rowLiveStreamEnvoy = "live_stream_envoy_kb"
)

// idleFor is longer than the time from one renewal of a stream to the next, and than two pings.
const idleFor = 40 * time.Second

// measureLiveIdle opens many streams on which nothing happens but pings and renewals, and gives how much more memory the
// processes have in use for each: resident, so with all that Go's and Envoy's allocators keep for later.
func measureLiveIdle(ctx context.Context, w *World) ([]figures.Figure, error) {
	l, err := w.liveGateway(ctx)
	if err != nil {
		return nil, err
	}
	n := 10_000
	idle := idleFor
	if w.options.Quick {
		n, idle = 20, time.Second
	}
	// What comes with the first streams is not a stream's.
	first, err := parts.Look(ctx, l.spec(view.Stream, 20, 0))
	if err != nil {
		return nil, err
	}
	defer func() { _ = first.Leave() }()
	before, err := l.resident(ctx)
	if err != nil {
		return nil, err
	}
	began := time.Now()
	viewers, err := parts.Look(ctx, l.spec(view.Stream, n, 0))
	if err != nil {
		return nil, err
	}
	opened := time.Since(began)
	most, watches, err := l.idle(ctx, idle)
	if err != nil {
		return nil, errors.Join(err, viewers.Leave())
	}
	if _, err := viewers.End(); err != nil {
		return nil, err
	}
	each := func(what string) float64 { return float64(most[what]-before[what]) / float64(n) / 1024 }
	return []figures.Figure{
		{Name: rowLiveStream, Value: each("livehub")},
		{Name: rowLiveStreamEnvoy, Value: each("envoy")},
		{Name: "live_stream_envoy_allocated_kb", Value: each(envoyAllocated)},
		{Name: "live_stream_authz_kb", Value: each("authz")},
		{Name: "live_idle_streams", Value: float64(n)},
		{Name: "live_idle_upstreams", Value: watches / liveReplicas},
		{Name: "live_idle_open_s", Value: opened.Seconds()},
	}, nil
}

// idle waits, and gives the most memory that each kind of server had meanwhile, and how many watches there were.
func (l *lives) idle(ctx context.Context, d time.Duration) (most map[string]int64, watches float64, err error) {
	most = map[string]int64{}
	tick := time.NewTicker(min(d, time.Second))
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < d; {
		select {
		case <-ctx.Done():
			return nil, 0, context.Cause(ctx)
		case <-tick.C:
		}
		now, err := l.resident(ctx)
		if err != nil {
			return nil, 0, err
		}
		for what, size := range now {
			most[what] = max(most[what], size)
		}
	}
	watches, err = l.watches(ctx)
	return most, watches, err
}

// envoyAllocated stands for what the Envoys have allocated, beside what the servers have resident.
const envoyAllocated = "envoy allocated"

// resident is how many bytes of memory each kind of server has in use.
func (l *lives) resident(ctx context.Context) (map[string]int64, error) {
	all := map[string]int64{}
	for what, processes := range l.servers() {
		for _, p := range processes {
			size, err := resident(p)
			if err != nil {
				return nil, err
			}
			all[what] += size
		}
	}
	for _, e := range l.Edges {
		size, err := allocated(ctx, e)
		if err != nil {
			return nil, err
		}
		all[envoyAllocated] += size
	}
	return all, nil
}
