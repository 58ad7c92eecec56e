package bench

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"sync"
	"time"

	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/load"
)

const rowPolicyInForce = "policy_in_force_ms"

// How a policy is seen in force: the static handler takes parts.Slow over this path, so that a call under the short timeout
// is answered with 504 and one under the default is not. A call begins every probeEvery.
const (
	probePath   = "/v1/apps/gate-api/previews"
	probeEvery  = 2 * time.Millisecond
	shortPolicy = "version: 1\noperations:\n  listPreviews: {timeout: 100ms}\n"
	plainPolicy = "version: 1\n"
	policyLimit = 20 * time.Second
)

// measurePolicy changes the policy file there and back while calls of another operation go on, none of which may fail, and
// finds out from when on calls are treated by the new policy.
func measurePolicy(ctx context.Context, w *World) ([]figures.Figure, error) {
	loadCtx, stop := context.WithCancel(ctx)
	defer stop()
	var (
		traffic load.Result
		running sync.WaitGroup
	)
	running.Go(func() {
		spec := w.get(w.Edges[0], cachedPath, 8, time.Minute)
		spec.Duration = time.Minute // until the last change is in force
		traffic = load.Run(loadCtx, spec)
	})
	took, err := w.changePolicy(ctx)
	stop()
	running.Wait()
	if err := errors.Join(err, traffic.Err()); err != nil {
		return nil, err
	}
	return []figures.Figure{
		{Name: rowPolicyInForce, Value: figures.Median(took)},
		{Name: rowPolicyInForce + "_worst", Value: slices.Max(took)},
		{Name: "policy_calls_meanwhile", Value: float64(traffic.Answered)},
	}, nil
}

// changePolicy gives the milliseconds that each change took.
func (w *World) changePolicy(ctx context.Context) (took []float64, err error) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 256}, Timeout: policyLimit}
	defer client.CloseIdleConnections()
	for range w.runs(6) {
		for _, change := range []struct {
			policy string
			status int
		}{
			{shortPolicy, http.StatusGatewayTimeout},
			{plainPolicy, http.StatusOK},
		} {
			d, err := w.inForce(ctx, client, change.policy, change.status)
			if err != nil {
				return nil, err
			}
			took = append(took, float64(d)/float64(time.Millisecond))
		}
	}
	return took, nil
}

// inForce changes the policy and gives the time from then to the start of the first call that is answered with status.
func (w *World) inForce(ctx context.Context, client *http.Client, policy string, status int) (time.Duration, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, policyLimit, errors.New("the policy did not come into force"))
	defer cancel()
	var (
		calls sync.WaitGroup
		mu    sync.Mutex
		first time.Time
	)
	defer calls.Wait()
	seen := make(chan struct{})
	ticker := time.NewTicker(probeEvery)
	defer ticker.Stop()
	changed := time.Now()
	if err := replace(w.Edges[0].Policy, policy); err != nil {
		return 0, err
	}
	for {
		begun := time.Now()
		calls.Go(func() {
			if got, err := w.probe(ctx, client); err != nil || got != status {
				return
			}
			mu.Lock()
			defer mu.Unlock()
			if first.IsZero() {
				close(seen)
			}
			if first.IsZero() || begun.Before(first) {
				first = begun
			}
		})
		select {
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		case <-seen:
			// Calls that began earlier may be answered later.
			calls.Wait()
			return first.Sub(changed), nil
		case <-ticker.C:
		}
	}
}

func (w *World) probe(ctx context.Context, client *http.Client) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, w.URL+probePath, nil)
	if err != nil {
		return 0, err
	}
	req.Header.Set("Authorization", "Bearer "+w.reader)
	resp, err := client.Do(req)
	if err != nil {
		return 0, err
	}
	return resp.StatusCode, resp.Body.Close()
}

// replace puts a new file in the place of another, as an operator's tools do.
func replace(file, text string) error {
	next := file + ".next"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		return fmt.Errorf("changing the policy: %w", err)
	}
	if err := os.Rename(next, file); err != nil {
		return fmt.Errorf("changing the policy: %w", err)
	}
	return nil
}
