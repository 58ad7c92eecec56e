package cache

import (
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/outbound"
	"hangar.io/glidepath/internal/telemetry"
)

// Options are the settings of the Redis that the replicas of a service share.
type Options struct {
	URL  string           `name:"redis-cache" env:"REDIS_CACHE_URL" placeholder:"URL" help:"The Redis that replicas share, redis://user:password@host:port/db. It holds a password: set the variable, not the flag. Empty: each replica is on its own."`
	TLS  outbound.Options `embed:"" prefix:"redis-cache-" envprefix:"REDIS_CACHE_"`
	Time time.Duration    `name:"redis-time" env:"REDIS_CACHE_TIME" default:"300ms" help:"The most that Redis may add to a call, and a little more for what is large. When it takes longer it counts as away."`
}

// Validate says all that is wrong with the options. It shows nothing of the URL.
func (o Options) Validate() error {
	var faults []error
	if o.URL != "" {
		if err := CheckURL(o.URL, o.TLS); err != nil {
			faults = append(faults, fmt.Errorf("--redis-cache: %w", err))
		}
	}
	if o.Time <= 0 {
		faults = append(faults, errors.New("--redis-time is not more than 0"))
	}
	return errors.Join(faults...)
}

// Open prepares the use of the Redis by a service, or gives nil where there is
// none: see OpenRedis.
func (o Options) Open(service string, metrics prometheus.Registerer, tracing *telemetry.Tracing) (*Redis, error) {
	if o.URL == "" {
		return nil, nil
	}
	return OpenRedis(RedisConfig{URL: o.URL, TLS: o.TLS, Service: service, Timeout: o.Time, Metrics: metrics, Tracing: tracing})
}
