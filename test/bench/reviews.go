package bench

import (
	"context"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/load"
	"hangar.io/glidepath/test/bench/parts"
)

const rowReviewRatio = "authz_review_ratio"

// measureReviews compares writes through the edge, each of which is two reviews that no cache answers, with a bare client
// that makes the same two: with the rights of authz, as many at once.
func measureReviews(ctx context.Context, w *World) ([]figures.Figure, error) {
	connections, length := w.connections(32), w.duration(1500*time.Millisecond)
	bare := func(ctx context.Context) ([]float64, error) {
		r, err := parts.Reviews(ctx, parts.ReviewSpec{
			Kubeconfig: w.AuthzKubeconfig, Token: w.operator, Connections: connections, Duration: length,
			Access: authorizationv1.ResourceAttributes{
				Namespace: "app-gate-api-cicd", Verb: "cancel", Group: api.Group, Resource: "runs",
			},
		})
		return []float64{r.PerSecond()}, err
	}
	writes := func(ctx context.Context) ([]float64, error) {
		r, err := parts.Load(ctx, load.Spec{
			Method: "POST", Addr: address(w.Edges[0]), Path: "/v1/apps/gate-api/pipelineruns/bench/cancel",
			Headers: map[string]string{"Authorization": "Bearer " + w.operator}, Connections: connections, Duration: length, Status: 200,
		})
		return []float64{r.PerSecond()}, err
	}
	series, err := turns(ctx, w.runs(9), 1, bare, writes)
	if err != nil {
		return nil, err
	}
	lines, err := ratio(rowReviewRatio, series[0])
	return append(lines, figures.Figure{Name: "authz_writes_rps", Value: figures.Median(series[0].Subject)}), err
}
