package bench

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/parts"
)

const (
	rowListPlain       = "cached_list_ratio"
	rowListGzip        = "cached_list_gzip_ratio"
	rowListNotModified = "cached_list_304_ratio"
)

// The same list, from livehub and from the static handler.
const (
	livePath   = "/v1/apps/" + listApp + "/live"
	staticPath = "/v1/apps/" + listApp + "/runs"
)

// measureLists compares listLive of an app with 1 MB of runs with the same bytes from a static handler, through the same
// edge and the same authz. livehub reads the list anew every two seconds meanwhile.
func measureLists(ctx context.Context, w *World) ([]figures.Figure, error) {
	if err := fillList(ctx, w.APIServer); err != nil {
		return nil, err
	}
	plain, err := w.variant(ctx, "identity")
	if err != nil {
		return nil, err
	}
	gzip, err := w.variant(ctx, "gzip")
	if err != nil {
		return nil, err
	}
	if err := parts.PutList(w.options.Dir, plain, gzip); err != nil {
		return nil, err
	}
	lines := []figures.Figure{
		{Name: "cached_list_kb", Value: float64(len(plain.Body)) / 1e3}, {Name: "cached_list_gzip_kb", Value: float64(len(gzip.Body)) / 1e3},
	}
	for _, form := range []struct {
		row     string
		headers map[string]string
		status  int
	}{
		{rowListPlain, map[string]string{"Accept-Encoding": "identity"}, http.StatusOK},
		{rowListGzip, map[string]string{"Accept-Encoding": "gzip"}, http.StatusOK},
		{rowListNotModified, map[string]string{"Accept-Encoding": "gzip", "If-None-Match": gzip.ETag}, http.StatusNotModified},
	} {
		more, err := w.measureList(ctx, form.row, form.headers, form.status)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

func (w *World) measureList(ctx context.Context, row string, headers map[string]string, status int) ([]figures.Figure, error) {
	run := func(path string) func(context.Context) ([]float64, error) {
		spec := w.get(w.Edges[0], path, 4, 1200*time.Millisecond)
		maps.Copy(spec.Headers, headers)
		spec.Status = status
		return func(ctx context.Context) ([]float64, error) {
			r, err := parts.Load(ctx, spec)
			return []float64{r.PerSecond()}, err
		}
	}
	series, err := turns(ctx, w.runs(7), 1, run(staticPath), run(livePath))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", row, err)
	}
	return ratio(row, series[0])
}

// variant reads the list once, in one encoding.
func (w *World) variant(ctx context.Context, encoding string) (parts.Variant, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+livePath, nil)
	if err != nil {
		return parts.Variant{}, err
	}
	req.Header.Set("Authorization", "Bearer "+w.reader)
	req.Header.Set("Accept-Encoding", encoding)
	client := &http.Client{Transport: &http.Transport{DisableCompression: true, DisableKeepAlives: true}, Timeout: 30 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return parts.Variant{}, err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err != nil {
		return parts.Variant{}, fmt.Errorf("reading the list: %w", err)
	}
	if resp.StatusCode != http.StatusOK || (encoding == "gzip") != (resp.Header.Get("Content-Encoding") == "gzip") {
		return parts.Variant{}, fmt.Errorf("reading the list as %s: status %d, encoding %q", encoding, resp.StatusCode, resp.Header.Get("Content-Encoding"))
	}
	return parts.Variant{Body: body, ETag: resp.Header.Get("ETag")}, nil
}
