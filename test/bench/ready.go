package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"golang.org/x/sync/errgroup"

	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/test/bench/figures"
)

const rowReady = "ready_s"

const (
	readyLimit = 30 * time.Second
	readyEvery = 5 * time.Millisecond
)

// measureReady ends the gateway's own processes, starts them all at once, and takes the time until a call through all of
// them is answered. API server and Redis are there all the time.
func measureReady(ctx context.Context, w *World) ([]figures.Figure, error) {
	var took []float64
	for range w.runs(5) {
		d, err := w.restart(ctx)
		if err != nil {
			return nil, err
		}
		took = append(took, d.Seconds())
	}
	return []figures.Figure{{Name: rowReady, Value: figures.Median(took)}}, nil
}

func (w *World) restart(ctx context.Context) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, readyLimit, errors.New("the gateway does not come up"))
	defer cancel()
	edge := w.Edges[0]
	all := []*process.Process{w.Livehubs[0].Process, edge.Authz, edge.XDS, edge.Envoy.Process}
	for _, p := range all {
		p.Kill()
	}
	begun := time.Now()
	group, groupCtx := errgroup.WithContext(ctx)
	for _, p := range all {
		group.Go(func() error { return p.Restart(groupCtx) })
	}
	err := w.await(ctx)
	took := time.Since(begun)
	if err := errors.Join(err, group.Wait()); err != nil {
		return 0, err
	}
	return took, nil
}

// await returns when a live list is answered: through Envoy, authz, livehub, the API server and Redis.
func (w *World) await(ctx context.Context) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: readyLimit}
	ticker := time.NewTicker(readyEvery)
	defer ticker.Stop()
	for {
		last := w.live(ctx, client)
		if last == nil {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", context.Cause(ctx), last)
		case <-ticker.C:
		}
	}
}

func (w *World) live(ctx context.Context, client *http.Client) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+"/v1/apps/gate-api/live", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+w.reader)
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	if err := resp.Body.Close(); err != nil {
		return err
	}
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", resp.StatusCode)
	}
	return nil
}
