package bench

import (
	"context"
	"slices"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/load"
	"hangar.io/glidepath/test/bench/parts"
)

const (
	rowCachedRatio = "authz_cached_ratio"
	rowCheckCPU    = "authz_check_cpu_us"
	rowCachedAdded = "authz_cached_added_p50_ms"
)

// cachedPath is a read of an app. A static handler answers it, so that the backend takes no part in the comparison: behind
// a check that allows everything there is no identity that a backend would take.
const cachedPath = "/v1/apps/gate-api/releases"

// measureThroughput compares the rate of cached reads with that of the same edge whose check allows everything, and the CPU
// of the two services and of the two Envoys.
func measureThroughput(ctx context.Context, w *World) ([]figures.Figure, error) {
	const connections = 32
	run := func(edge *devenv.Edge, checks int) func(context.Context) ([]float64, error) {
		spec := w.get(edge, cachedPath, connections, 1500*time.Millisecond)
		return withCPU(func(ctx context.Context) (load.Result, error) { return parts.Load(ctx, spec) }, checks, edge.Envoy.Process.PID())
	}
	series, err := turns(ctx, w.runs(9), 4, run(w.bare, w.noop.PID()), run(w.Edges[0], w.Edges[0].Authz.PID()))
	if err != nil {
		return nil, err
	}
	lines, err := ratio(rowCachedRatio, series[0])
	if err != nil {
		return nil, err
	}
	cpu, err := difference(rowCheckCPU, series[2])
	if err != nil {
		return nil, err
	}
	envoy, err := difference("authz_cached_envoy_cpu_us", series[3])
	if err != nil {
		return nil, err
	}
	return append(slices.Concat(lines, cpu, envoy),
		figures.Figure{Name: "authz_cached_rps", Value: figures.Median(series[0].Subject)},
		figures.Figure{Name: "authz_noop_rps", Value: figures.Median(series[0].Base)},
		figures.Figure{Name: "authz_noop_envoy_cpu_us", Value: figures.Median(series[3].Base)},
	), nil
}

// measureLatency compares the median time of a cached read on one connection.
func measureLatency(ctx context.Context, w *World) ([]figures.Figure, error) {
	run := func(edge *devenv.Edge) func(context.Context) ([]float64, error) {
		spec := w.get(edge, cachedPath, 1, time.Second)
		return func(ctx context.Context) ([]float64, error) {
			r, err := parts.Load(ctx, spec)
			return []float64{r.P50}, err
		}
	}
	series, err := turns(ctx, w.runs(11), 1, run(w.bare), run(w.Edges[0]))
	if err != nil {
		return nil, err
	}
	lines, err := difference(rowCachedAdded, series[0])
	return append(lines, figures.Figure{Name: "authz_noop_p50_ms", Value: figures.Median(series[0].Base)}), err
}
