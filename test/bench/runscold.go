package bench

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/test/bench/figures"
)

const (
	rowColdReads = "cold_fill_upstream_reads"
	rowColdHeap  = "runs_cold_heap_mb"
	rowRunsRSS   = "runs_rss_mb"
)

const (
	coldCallers = 50
	coldLimit   = 90 * time.Second
	coldEvery   = 20 * time.Millisecond
)

// measureColdReads has many callers ask for one list at once that nobody has read before, over both replicas, and counts how
// often the archive was asked for its first page.
func measureColdReads(ctx context.Context, w *World) ([]figures.Figure, error) {
	a, err := w.archiveGateway(ctx)
	if err != nil {
		return nil, err
	}
	var reads []float64
	var took []float64
	for i := range w.runs(5) {
		a.Results.Reset()
		errs := make([]error, coldCallers)
		began := time.Now()
		each(coldCallers, func(n int) { _, errs[n] = w.cold(ctx, a, runsPath("summary", 900-i)) })
		took = append(took, milliseconds(time.Since(began)))
		if err := errors.Join(errs...); err != nil {
			return nil, err
		}
		reads = append(reads, a.firstPages())
	}
	return []figures.Figure{
		{Name: rowColdReads, Value: slices.Max(reads)},
		{Name: "cold_fill_callers", Value: coldCallers},
		{Name: "cold_fill_ms", Value: figures.Median(took)},
	}, nil
}

// firstPages is how many lists the archive was asked for.
func (a *archives) firstPages() float64 {
	n := 0.0
	for _, r := range a.Results.Requests() {
		if r.Kind == "records" && !strings.Contains(r.URI, "page_token=") {
			n++
		}
	}
	return n
}

// cold asks until there is an answer: what takes longer than a call may wait goes on without it.
func (w *World) cold(ctx context.Context, a *archives, path string) (size int64, err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, coldLimit, errors.New("the list was not read in time"))
	defer cancel()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for {
		status, size, err := w.once(ctx, client, a.URL+path)
		switch {
		case err != nil:
			return 0, errors.Join(err, context.Cause(ctx))
		case status == http.StatusOK:
			return size, nil
		case status != http.StatusBadGateway && status != http.StatusGatewayTimeout:
			return 0, fmt.Errorf("a list that nobody has: %w", unexpected(status))
		}
	}
}

func (w *World) once(ctx context.Context, client *http.Client, url string) (status int, size int64, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Authorization", "Bearer "+w.reader)
	resp, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer func() { _ = resp.Body.Close() }()
	size, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, size, err
}

// measureColdHeap asks for all runs with their TaskRuns, which nobody has read, and gives the most heap that a replica had
// meanwhile over what it had before, and the most memory that one had in use at any time since its start.
func measureColdHeap(ctx context.Context, w *World) ([]figures.Figure, error) {
	a, err := w.archiveGateway(ctx)
	if err != nil {
		return nil, err
	}
	var peaks, took []float64
	size := int64(0)
	for i := range w.runs(3) {
		began := time.Now()
		peak, err := a.peak(ctx, func() (err error) {
			size, err = w.cold(ctx, a, runsPath("full", max(a.runs-i, 1)))
			return err
		})
		if err != nil {
			return nil, err
		}
		peaks, took = append(peaks, peak), append(took, time.Since(began).Seconds())
	}
	rss := int64(0)
	for _, r := range a.Runs {
		most, err := mostResident(r.Process)
		if err != nil {
			return nil, err
		}
		rss = max(rss, most)
	}
	return []figures.Figure{
		{Name: rowColdHeap, Value: slices.Max(peaks)},
		{Name: "runs_cold_json_mb", Value: float64(size) / 1e6},
		{Name: "runs_cold_s", Value: figures.Median(took)},
		{Name: rowRunsRSS, Value: float64(rss) / (1 << 20)},
	}, nil
}

// peak is how many megabytes the heap of a replica grew by while f ran: of that which grew most.
func (a *archives) peak(ctx context.Context, f func() error) (float64, error) {
	idle, most, errs := make([]float64, len(a.Runs)), make([]float64, len(a.Runs)), make([]error, len(a.Runs))
	for i, r := range a.Runs {
		if idle[i], errs[i] = heap(ctx, r); errs[i] != nil {
			return 0, errs[i]
		}
	}
	looking, stop := context.WithCancel(ctx)
	defer stop()
	var all sync.WaitGroup
	for i, r := range a.Runs {
		all.Go(func() {
			tick := time.NewTicker(coldEvery)
			defer tick.Stop()
			for {
				now, err := heap(ctx, r)
				if err != nil {
					errs[i] = err
					return
				}
				most[i] = max(most[i], now-idle[i])
				select {
				case <-looking.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	err := f()
	stop()
	all.Wait()
	return slices.Max(most) / (1 << 20), errors.Join(err, errors.Join(errs...))
}

// heap is how many bytes the spans of a replica's heap have that something is in.
func heap(ctx context.Context, b *devenv.Backend) (float64, error) {
	const name = "go_memstats_heap_inuse_bytes"
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, b.Metrics, nil)
	if err != nil {
		return 0, err
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("reading a heap's size: %w", err)
	}
	defer func() { _ = resp.Body.Close() }()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(resp.Body)
	if err != nil {
		return 0, fmt.Errorf("reading a heap's size: %w", err)
	}
	values := families[name].GetMetric()
	if len(values) != 1 {
		return 0, fmt.Errorf("%d values of %s", len(values), name)
	}
	return values[0].GetGauge().GetValue(), nil
}
