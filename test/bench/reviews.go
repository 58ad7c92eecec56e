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
// that makes the same two: with the rights of authz, as many at once. Beside the rates it takes the CPU of each process: all
// share one machine, so what one of them uses for a write is taken from the others.
func measureReviews(ctx context.Context, w *World) ([]figures.Figure, error) {
	connections, length := w.connections(32), w.duration(1500*time.Millisecond)
	bare := func(ctx context.Context) (load.Result, error) {
		return parts.Reviews(ctx, parts.ReviewSpec{
			Kubeconfig: w.AuthzKubeconfig, Token: w.operator, Connections: connections, Duration: length,
			Access: authorizationv1.ResourceAttributes{
				Namespace: "app-gate-api-cicd", Verb: "cancel", Group: api.Group, Resource: "runs",
			},
		})
	}
	writes := func(ctx context.Context) (load.Result, error) {
		return parts.Load(ctx, load.Spec{
			Method: "POST", Addr: address(w.Edges[0]), Path: "/v1/apps/gate-api/pipelineruns/bench/cancel",
			Headers: map[string]string{"Authorization": "Bearer " + w.operator}, Connections: connections, Duration: length, Status: 200,
		})
	}
	names := []string{"client", "apiserver", "envoy", "authz", "backend"}
	pids := []int{w.APIServer.Process.PID(), w.Edges[0].Envoy.Process.PID(), w.Edges[0].Authz.PID(), w.static.PID()}
	series, err := turns(ctx, w.runs(9), 1+len(names), withCPU(bare, pids...), withCPU(writes, pids...))
	if err != nil {
		return nil, err
	}
	lines, err := ratio(rowReviewRatio, series[0])
	if err != nil {
		return nil, err
	}
	say := func(name string, values []float64) {
		lines = append(lines, figures.Figure{Name: name, Value: figures.Median(values)})
	}
	say("authz_writes_rps", series[0].Subject)
	say("authz_bare_rps", series[0].Base)
	for i, name := range names {
		say("authz_write_cpu_us_"+name, series[1+i].Subject)
		if i < 2 { // the others do nothing for the bare client
			say("authz_bare_cpu_us_"+name, series[1+i].Base)
		}
	}
	return lines, nil
}
