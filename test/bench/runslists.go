package bench

import (
	"context"
	"fmt"
	"time"

	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/parts"
)

const (
	rowRunsPlain       = "cached_runs_ratio"
	rowRunsGzip        = "cached_runs_gzip_ratio"
	rowRunsNotModified = "cached_runs_304_ratio"
	rowRunsHitP50      = "runs_hit_p50_ms"
	rowRunsHitP99      = "runs_hit_p99_ms"
)

// megabyteRuns are as many runs as a full list of 1 MB has.
const megabyteRuns = 17

// runsPath is a list of archived runs.
func runsPath(view string, limit int) string {
	return fmt.Sprintf("/v1/apps/%s/runs?sinceHours=720&view=%s&limit=%d", archivedApp, view, limit)
}

// measureRunsLists compares listRuns of 1 MB with the same bytes from a static handler, and gives the time of a call for its
// summary, of 100 runs, on one connection.
func measureRunsLists(ctx context.Context, w *World) ([]figures.Figure, error) {
	a, err := w.archiveGateway(ctx)
	if err != nil {
		return nil, err
	}
	edge := a.Edges[0]
	lines, err := w.compare(ctx, compared{
		edge: edge, app: archivedApp, path: runsPath("full", megabyteRuns), name: "cached_runs",
		rows: [3]string{rowRunsPlain, rowRunsGzip, rowRunsNotModified},
	})
	if err != nil {
		return nil, err
	}
	var p50, p99 []float64
	for range w.runs(5) {
		r, err := parts.Load(ctx, w.get(edge, runsPath("summary", 100), 1, 2*time.Second))
		if err != nil {
			return nil, err
		}
		p50, p99 = append(p50, r.P50), append(p99, r.P99)
	}
	return append(lines,
		figures.Figure{Name: rowRunsHitP50, Value: figures.Median(p50)}, figures.Figure{Name: rowRunsHitP99, Value: figures.Median(p99)}), nil
}
