package bench

import (
	"context"
	"fmt"
	"math"
	"time"

	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/view"
)

const (
	rowLiveChange    = "live_change_p99_ms"
	rowLiveUpstreams = "live_upstreams_per_replica"
)

// measureLive has the same changes seen by the same number of viewers by streams, by watches of their own and by polling,
// in turns, and by nobody: what a change costs then is not the viewers'.
func measureLive(ctx context.Context, w *World) ([]figures.Figure, error) {
	l, err := w.liveGateway(ctx)
	if err != nil {
		return nil, err
	}
	viewers := w.viewers(200)
	runs := map[view.Way][]sight{}
	var nobody []sight
	for range w.runs(3) {
		for _, way := range []view.Way{view.Stream, view.Watch, view.Poll} {
			s, err := l.look(ctx, look{way: way, viewers: viewers, perSecond: 20, d: w.duration(10 * time.Second)})
			if err != nil {
				return nil, err
			}
			runs[way] = append(runs[way], s)
		}
		s, err := l.look(ctx, look{way: view.Stream, perSecond: 20, d: w.duration(10 * time.Second)})
		if err != nil {
			return nil, err
		}
		nobody = append(nobody, s)
	}
	upstreams := 0.0
	for _, s := range runs[view.Stream] {
		upstreams = max(upstreams, s.watches/liveReplicas)
	}
	lines := []figures.Figure{
		{Name: rowLiveChange, Value: percentile(runs[view.Stream], 0.99, took)},
		{Name: rowLiveChange + "_noise", Value: noise(runs[view.Stream])},
		{Name: rowLiveUpstreams, Value: upstreams},
		{Name: "live_watch_upstreams", Value: runs[view.Watch][0].watches},
	}
	for _, way := range []view.Way{view.Stream, view.Watch, view.Poll} {
		name := "live_" + string(way)
		lines = append(lines,
			figures.Figure{Name: name + "_p50_ms", Value: percentile(runs[way], 0.5, took)},
			figures.Figure{Name: name + "_p99_ms", Value: percentile(runs[way], 0.99, took)},
			figures.Figure{Name: name + "_made_p99_ms", Value: percentile(runs[way], 0.99, made)},
			figures.Figure{Name: name + "_cpu_us", Value: cpuMore(runs[way], nobody, "") / float64(viewers)},
		)
		for _, server := range []string{"livehub", "envoy", "authz", "apiserver"} {
			lines = append(lines, figures.Figure{Name: fmt.Sprintf("%s_cpu_us_%s", name, server), Value: cpuMore(runs[way], nobody, server) / float64(viewers)})
		}
	}
	return lines, nil
}

func took(s sight) []float64 { return s.took }
func made(s sight) []float64 { return s.made }

// noise is how far the p99 of one run is from the next, as a median; 0 of a single run.
func noise(runs []sight) float64 {
	far := []float64{}
	for i, s := range runs[1:] {
		far = append(far, math.Abs(figures.Percentile(s.took, 0.99)-figures.Percentile(runs[i].took, 0.99)))
	}
	if len(far) == 0 {
		return 0
	}
	return figures.Median(far)
}

// cpuMore is how many microseconds a kind of server used for a change over what it used when nobody looked, as a median.
func cpuMore(runs, nobody []sight, server string) float64 {
	var more []float64
	for i, s := range runs {
		more = append(more, s.cpu[server]-nobody[i].cpu[server])
	}
	return figures.Median(more)
}

// viewers is how many look: n, or a few in a quick bench.
func (w *World) viewers(n int) int {
	if w.options.Quick {
		return min(n, 10)
	}
	return n
}
