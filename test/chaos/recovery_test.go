package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// recovers waits until the load is served and refused at every edge as if nothing had been, and Redis is shared. It gives the
// phase of it.
func (w *world) recovers(t *testing.T) *phase {
	t.Helper()
	after := w.load.then("recovering")
	eventually(t, "the edges serve and refuse as before", func() error {
		return errors.Join(allEdges(served)(t.Context(), w, after), allEdges(refused)(t.Context(), w, after), w.rehearse())
	})
	before := w.shared(t)
	eventually(t, "the replicas share through Redis", func() error {
		for _, l := range w.gw.Livehubs {
			if err := redisUp(t.Context(), l.Metrics, true); err != nil {
				return err
			}
		}
		if now := w.shared(t); now <= before {
			return fmt.Errorf("%v lists came out of Redis, as before", now)
		}
		return nil
	})
	return after
}

// rehearse makes every call of the cast once at every edge and wants what is due.
func (w *world) rehearse() error {
	for edge := range w.load.urls {
		for _, p := range w.load.cast {
			v := w.load.perform(edge, p)
			if v.status == http.StatusOK != p.due(v.began) || (v.status != http.StatusOK && v.rule != p.refusals[0]) {
				return fmt.Errorf("%s at edge %d: %d %s %w", p.name, edge+1, v.status, v.rule, v.err)
			}
		}
	}
	return nil
}

// shared is how many lists the replicas got from each other.
func (w *world) shared(t *testing.T) float64 {
	t.Helper()
	total := 0.0
	for _, l := range w.gw.Livehubs {
		families, err := scrape(t.Context(), l.Metrics)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range families["glidepath_cache_gets_total"].GetMetric() {
			for _, label := range m.GetLabel() {
				if label.GetName() == "result" && label.GetValue() == "shared" {
					total += m.GetCounter().GetValue()
				}
			}
		}
	}
	return total
}

// redisUp is an error until a replica says that it uses Redis, or that it does not.
func redisUp(ctx context.Context, url string, want bool) error {
	families, err := scrape(ctx, url)
	if err != nil {
		return err
	}
	for _, m := range families["glidepath_cache_redis_up"].GetMetric() {
		if (m.GetGauge().GetValue() == 1) == want {
			return nil
		}
	}
	return fmt.Errorf("%s: glidepath_cache_redis_up is not as it should be", url)
}

// withoutRedis wants every replica to be on its own, and calls to be served all the same.
func withoutRedis(ctx context.Context, w *world, p *phase) error {
	for _, l := range w.gw.Livehubs {
		if err := redisUp(ctx, l.Metrics, false); err != nil {
			return err
		}
	}
	return unnoticed(ctx, w, p)
}

func scrape(ctx context.Context, url string) (map[string]*dto.MetricFamily, error) {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, http.NoBody)
	if err != nil {
		return nil, err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = res.Body.Close() }()
	parser := expfmt.NewTextParser(model.UTF8Validation)
	return parser.TextToMetricFamilies(io.LimitReader(res.Body, maxBody))
}
