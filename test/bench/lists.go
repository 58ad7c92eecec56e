package bench

import (
	"context"

	"hangar.io/glidepath/test/bench/figures"
)

const (
	rowListPlain       = "cached_list_ratio"
	rowListGzip        = "cached_list_gzip_ratio"
	rowListNotModified = "cached_list_304_ratio"
)

const livePath = "/v1/apps/" + listApp + "/live"

// measureLists compares listLive of an app with 1 MB of runs with the same bytes from a static handler. livehub reads the
// list anew every two seconds meanwhile.
func measureLists(ctx context.Context, w *World) ([]figures.Figure, error) {
	if err := fillList(ctx, w.APIServer); err != nil {
		return nil, err
	}
	return w.compare(ctx, compared{
		edge: w.Edges[0], app: listApp, path: livePath, name: "cached_list", rows: [3]string{rowListPlain, rowListGzip, rowListNotModified},
	})
}
