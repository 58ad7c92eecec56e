package recorder

import (
	"context"
	"fmt"
)

// Await returns the requests once there are at least n, or an error when the context ends before.
func (r *Recorder) Await(ctx context.Context, n int) ([]Request, error) {
	for {
		r.mu.Lock()
		requests, arrived := append([]Request(nil), r.requests...), r.arrived
		r.mu.Unlock()
		if len(requests) >= n {
			return requests, nil
		}
		select {
		case <-arrived:
		case <-ctx.Done():
			return requests, fmt.Errorf("waiting for request %d of %d: %w", len(requests)+1, n, ctx.Err())
		}
	}
}
