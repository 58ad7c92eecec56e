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
	rowForgedReader  = "forged_flood_reader_ratio"
)

// cancelPath is a write that a static handler answers at once.
const cancelPath = "/v1/apps/gate-api/pipelineruns/bench/cancel"

// measureForged floods the edge with forged tokens of the cluster's own issuer, counts the TokenReviews that they cause, and
// compares the p99 of a writer and of a reader meanwhile with those in a flood of as many calls without a token, which need no
// decision at all.
func measureForged(ctx context.Context, w *World) ([]figures.Figure, error) {
	quiet, err := w.write(ctx)
	if err != nil {
		return nil, err
	}
	reviews, rate, forged := 0.0, 0.0, w.forger(false)
	writer, err := w.beside(ctx, func(ctx context.Context, token func() string) (flooded, error) {
		f, err := w.writesUnder(ctx, token)
		if token() != "" {
			reviews, rate = reviews+f.reviews, max(rate, f.rate)
		}
		return f, err
	}, forged)
	if err != nil {
		return nil, err
	}
	reader, err := w.beside(ctx, w.readsUnder, forged)
	if err != nil {
		return nil, err
	}
	out := []figures.Figure{
		{Name: rowForgedReviews, Value: reviews},
		{Name: "forged_flood_rps", Value: rate},
		{Name: "forged_flood_writer_p99_ms", Value: figures.Median(writer.Subject)},
		{Name: "forged_flood_reader_p99_ms", Value: figures.Median(reader.Subject)},
		{Name: "forged_flood_quiet_p99_ms", Value: quiet.P99},
	}
	for _, other := range []struct {
		name  string
		token func() string
	}{{"unknown_key", w.forger(true)}, {"unknown_token", rand.Text}} {
		writes, err := w.writesUnder(ctx, other.token)
		if err != nil {
			return nil, err
		}
		reads, err := w.readsUnder(ctx, other.token)
		if err != nil {
			return nil, err
		}
		out = append(out,
			figures.Figure{Name: "forged_flood_" + other.name + "_reviews", Value: writes.reviews},
			figures.Figure{Name: "forged_flood_" + other.name + "_writer_p99_ms", Value: writes.p99},
			figures.Figure{Name: "forged_flood_" + other.name + "_reader_p99_ms", Value: reads.p99})
	}
	for _, of := range []struct {
		name   string
		series figures.Series
	}{{rowForgedWriter, writer}, {rowForgedReader, reader}} {
		lines, err := ratio(of.name, of.series)
		if err != nil {
			return nil, err
		}
		out = append(out, lines...)
	}
	return out, nil
}

// beside compares the p99 under a flood of tokens with that under a flood without.
func (w *World) beside(ctx context.Context, under func(context.Context, func() string) (flooded, error), token func() string) (figures.Series, error) {
	run := func(token func() string) func(context.Context) ([]float64, error) {
		return func(ctx context.Context) ([]float64, error) {
			f, err := under(ctx, token)
			return []float64{f.p99}, err
		}
	}
	series, err := turns(ctx, w.runs(5), 1, run(func() string { return "" }), run(token))
	if err != nil {
		return figures.Series{}, err
	}
	return series[0], nil
}

// flooded is what one run under a flood came to.
type flooded struct{ reviews, rate, p99 float64 }

// writesUnder has a writer write during a flood, and counts the TokenReviews that are not for the writer's calls.
func (w *World) writesUnder(ctx context.Context, token func() string) (flooded, error) {
	mark, err := w.APIServer.AuditMark(ctx)
	if err != nil {
		return flooded{}, err
	}
	r, rate, err := w.underFlood(ctx, token, w.write)
	if err != nil {
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
	return flooded{reviews: float64(reviews), rate: rate, p99: r.P99}, nil
}

// readsUnder has a reader read what is cached during a flood.
func (w *World) readsUnder(ctx context.Context, token func() string) (flooded, error) {
	r, rate, err := w.underFlood(ctx, token, w.read)
	return flooded{rate: rate, p99: r.P99}, err
}

// underFlood runs a load during a flood, and gives the flood's rate too.
func (w *World) underFlood(ctx context.Context, token func() string, run func(context.Context) (load.Result, error)) (load.Result, float64, error) {
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
	r, err := run(ctx)
	stop()
	f := <-done
	return r, f.rate, errors.Join(err, f.err)
}

// write is the load of one writer.
func (w *World) write(ctx context.Context) (load.Result, error) {
	return parts.Load(ctx, load.Spec{
		Method: "POST", Addr: address(w.Edges[0]), Path: cancelPath, Headers: map[string]string{"Authorization": "Bearer " + w.operator},
		Connections: 1, Duration: w.duration(2 * time.Second), Status: 200,
	})
}

// read is the load of one reader.
func (w *World) read(ctx context.Context) (load.Result, error) {
	return parts.Load(ctx, w.get(w.Edges[0], cachedPath, 1, 2*time.Second))
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
