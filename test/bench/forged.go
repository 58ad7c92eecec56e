package bench

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/test/bench/figures"
	"hangar.io/glidepath/test/bench/load"
	"hangar.io/glidepath/test/bench/parts"
)

const (
	rowForgedReviews = "forged_flood_reviews"
	rowForgedWriter  = "forged_flood_writer_ratio"
)

// cancelPath is a write that a static handler answers at once.
const cancelPath = "/v1/apps/gate-api/pipelineruns/bench/cancel"

// measureForged floods the edge with forged tokens of the cluster's own issuer, counts the TokenReviews that they cause, and
// compares a writer's p99 meanwhile with that in a flood of as many calls without a token, which need no decision at all.
func measureForged(ctx context.Context, w *World) ([]figures.Figure, error) {
	var reviews, rate float64
	run := func(token func() string) func(context.Context) ([]float64, error) {
		return func(ctx context.Context) ([]float64, error) {
			r, err := w.underFlood(ctx, token)
			if token() != "" {
				reviews, rate = reviews+r.reviews, max(rate, r.rate)
			}
			return []float64{r.p99}, err
		}
	}
	quiet, err := w.write(ctx)
	if err != nil {
		return nil, err
	}
	series, err := turns(ctx, w.runs(5), 1, run(func() string { return "" }), run(w.forger(false)))
	if err != nil {
		return nil, err
	}
	lines, err := ratio(rowForgedWriter, series[0])
	if err != nil {
		return nil, err
	}
	madeUp, err := w.underFlood(ctx, w.forger(true))
	return append([]figures.Figure{
		{Name: rowForgedReviews, Value: reviews},
		{Name: "forged_flood_rps", Value: rate},
		{Name: "forged_flood_unknown_key_reviews", Value: madeUp.reviews},
		{Name: "forged_flood_writer_p99_ms", Value: figures.Median(series[0].Subject)},
		{Name: "forged_flood_quiet_p99_ms", Value: quiet.P99},
	}, lines...), err
}

// flooded is what one run under a flood came to.
type flooded struct{ reviews, rate, p99 float64 }

// underFlood has a writer write during a flood, and counts the TokenReviews that are not for the writer's calls.
func (w *World) underFlood(ctx context.Context, token func() string) (flooded, error) {
	mark, err := w.APIServer.AuditMark(ctx)
	if err != nil {
		return flooded{}, err
	}
	flooding, stop := context.WithCancel(ctx)
	defer stop()
	type sent struct {
		rate float64
		err  error
	}
	done := make(chan sent, 1)
	go func() {
		rate, err := flood(flooding, w.URL, token)
		done <- sent{rate, err}
	}()
	r, err := w.write(ctx)
	stop()
	f := <-done
	if err := errors.Join(err, f.err); err != nil {
		return flooded{}, err
	}
	events, err := w.APIServer.Audit(ctx, mark)
	if err != nil {
		return flooded{}, err
	}
	reviews := -r.Sent // one for each write
	for _, e := range events {
		if e.Resource == "tokenreviews" && strings.HasSuffix(e.User, ":"+fleet.AuthzServiceAccount) {
			reviews++
		}
	}
	return flooded{reviews: float64(reviews), rate: f.rate, p99: r.P99}, nil
}

// write is the load of one writer.
func (w *World) write(ctx context.Context) (load.Result, error) {
	return parts.Load(ctx, load.Spec{
		Method: "POST", Addr: address(w.Edges[0]), Path: cancelPath, Headers: map[string]string{"Authorization": "Bearer " + w.operator},
		Connections: 1, Duration: w.duration(2 * time.Second), Status: 200,
	})
}

// forger gives tokens like the operator's, with a signature that is none; of a key of a made-up name where that is asked for.
func (w *World) forger(madeUp bool) func() string {
	part := strings.Split(w.operator, ".")
	return func() string {
		signature := make([]byte, 64)
		_, _ = rand.Read(signature) // never fails
		head := part[0]
		if madeUp {
			head = header(rand.Text())
		}
		return head + "." + part[1] + "." + base64.RawURLEncoding.EncodeToString(signature)
	}
}

func header(kid string) string {
	raw, err := json.Marshal(map[string]string{"alg": "ES256", "kid": kid, "typ": "JWT"})
	if err != nil { // strings always have a JSON form
		return ""
	}
	return base64.RawURLEncoding.EncodeToString(raw)
}

// unexpected is an answer that a flood must not get.
func unexpected(status int) error {
	return fmt.Errorf("a call of the flood was answered with %d", status)
}
