package bench

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/parts"
)

// compared is a cached list that is set against the same bytes from a static handler, through the same edge and the same authz.
type compared struct {
	edge      *devenv.Edge
	app, path string
	// name begins the names of the list's sizes, rows are those of the comparisons: of the list as it is, compressed, and not
	// modified.
	name string
	rows [3]string
}

// compare gives the lines of all three comparisons.
func (w *World) compare(ctx context.Context, c compared) ([]figures.Figure, error) {
	plain, err := w.variant(ctx, c, "identity")
	if err != nil {
		return nil, err
	}
	gzip, err := w.variant(ctx, c, "gzip")
	if err != nil {
		return nil, err
	}
	if err := parts.PutList(w.options.Dir, c.app, plain, gzip); err != nil {
		return nil, err
	}
	lines := []figures.Figure{
		{Name: c.name + "_kb", Value: float64(len(plain.Body)) / 1e3}, {Name: c.name + "_gzip_kb", Value: float64(len(gzip.Body)) / 1e3},
	}
	for i, form := range []struct {
		headers map[string]string
		status  int
	}{
		{map[string]string{"Accept-Encoding": "identity"}, http.StatusOK},
		{map[string]string{"Accept-Encoding": "gzip"}, http.StatusOK},
		{map[string]string{"Accept-Encoding": "gzip", "If-None-Match": gzip.ETag}, http.StatusNotModified},
	} {
		more, err := w.measureList(ctx, c, c.rows[i], form.headers, form.status)
		if err != nil {
			return nil, err
		}
		lines = append(lines, more...)
	}
	return lines, nil
}

func (w *World) measureList(ctx context.Context, c compared, row string, headers map[string]string, status int) ([]figures.Figure, error) {
	run := func(path string) func(context.Context) ([]float64, error) {
		spec := w.get(c.edge, path, 4, 1200*time.Millisecond)
		maps.Copy(spec.Headers, headers)
		spec.Status = status
		return func(ctx context.Context) ([]float64, error) {
			r, err := parts.Load(ctx, spec)
			return []float64{r.PerSecond()}, err
		}
	}
	series, err := turns(ctx, w.runs(7), 1, run(parts.StaticPath(c.app)), run(c.path))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", row, err)
	}
	return ratio(row, series[0])
}

// variant reads the list once, in one encoding.
func (w *World) variant(ctx context.Context, c compared, encoding string) (parts.Variant, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.edge.URL+c.path, nil)
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
