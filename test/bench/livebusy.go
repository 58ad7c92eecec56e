package bench

import (
	"context"
	"time"

	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/view"
)

const rowLiveBusy = "live_busy_p99_ms"

// busyRate is how many changes a second a thousand viewers see.
const busyRate = 4

// measureLiveBusy has a thousand viewers, five times as many as a replica takes by itself, see changes.
func measureLiveBusy(ctx context.Context, w *World) ([]figures.Figure, error) {
	l, err := w.liveGateway(ctx)
	if err != nil {
		return nil, err
	}
	viewers := w.viewers(1000)
	var runs, nobody []sight
	for range w.runs(2) {
		for _, k := range []struct {
			viewers int
			to      *[]sight
		}{{viewers, &runs}, {0, &nobody}} {
			s, err := l.look(ctx, look{way: view.Stream, viewers: k.viewers, perSecond: busyRate, d: w.duration(15 * time.Second)})
			if err != nil {
				return nil, err
			}
			*k.to = append(*k.to, s)
		}
	}
	return []figures.Figure{
		{Name: rowLiveBusy, Value: percentile(runs, 0.99, took)},
		{Name: rowLiveBusy + "_noise", Value: noise(runs)},
		{Name: "live_busy_p50_ms", Value: percentile(runs, 0.5, took)},
		{Name: "live_busy_deliveries_per_s", Value: runs[0].perSecond * float64(viewers)},
		{Name: "live_busy_cpu_us", Value: cpuMore(runs, nobody, "") / float64(viewers)},
		{Name: "live_busy_cpu_us_livehub", Value: cpuMore(runs, nobody, "livehub") / float64(viewers)},
		{Name: "live_busy_cpu_us_envoy", Value: cpuMore(runs, nobody, "envoy") / float64(viewers)},
		{Name: "live_busy_upstreams", Value: runs[0].watches / liveReplicas},
	}, nil
}
