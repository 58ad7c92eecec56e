package livehub

import (
	"context"
	"errors"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/telemetry"
)

// sharing is the Redis that replicas share, or none.
type sharing struct {
	shared *cache.Redis // nil for none
}

func openRedis(cfg Config, reg prometheus.Registerer, tracing *telemetry.Tracing) (sharing, error) {
	if cfg.RedisCache == "" {
		return sharing{}, nil
	}
	r, err := cache.OpenRedis(cache.RedisConfig{URL: cfg.RedisCache, TLS: cfg.Redis, Service: backend, Timeout: cfg.RedisTime, Metrics: reg, Tracing: tracing})
	return sharing{shared: r}, err
}

func (s sharing) run(ctx context.Context) {
	if s.shared != nil {
		s.shared.Run(ctx)
	}
}

// ready is an error until it is known whether Redis is there. It does not have
// to be there.
func (s sharing) ready() error {
	if s.shared != nil && !s.shared.Probed() {
		return errors.New("not known yet whether Redis is there")
	}
	return nil
}

func (s sharing) close() error {
	if s.shared == nil {
		return nil
	}
	return s.shared.Close()
}
