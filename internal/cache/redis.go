package cache

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/outbound"
	"hangar.io/glidepath/internal/telemetry"
)

const (
	// probeEvery is how often it is tried out whether Redis works.
	probeEvery = time.Second
	// maxHold bounds how long Redis stays unused when it works for probes and
	// then fails, again and again.
	maxHold = 30 * time.Second
	// bytesPerSecond is how fast a Redis that works moves a large value.
	bytesPerSecond = 16 << 20
)

// errAway says that Redis is not used now.
var errAway = errors.New("redis is away")

// RedisConfig says how a Redis is used. All but TLS and Tracing is required.
type RedisConfig struct {
	// URL is redis://user:password@host:port/db, or rediss:// for TLS. More
	// hosts follow as ?addr=host:port&addr=...: with &master_name= they are
	// Sentinels, without it nodes of a Cluster.
	URL string
	// TLS says whom to trust and what to show where the URL is rediss://; the
	// files are read again when they change. HTTP proxies lead to no Redis.
	TLS outbound.Options
	// Service is whose caches it is for, as in Config.Name.
	Service string
	// Timeout is the most that Redis may add to a call. What takes longer
	// counts as Redis being away.
	Timeout time.Duration
	// Metrics tells whether Redis is used.
	Metrics prometheus.Registerer
	// Tracing makes the spans of what Redis is asked for calls; nil makes none.
	Tracing *telemetry.Tracing
}

// Redis is the shared side of caches; nil is that of a process that has none,
// which may be run, asked whether it is ready, and closed. It is safe for
// concurrent use. The first fault of any kind has every cache do without it, at no
// cost, until a probe has gone through: that is the only thing that waits for a
// Redis that is away.
type Redis struct {
	client  redis.UniversalClient
	timeout time.Duration
	tracing *telemetry.Tracing
	probe   string // key

	up       atomic.Bool
	probed   atomic.Bool
	relapses atomic.Int32 // how often it was taken out of use since it last worked for a while
	gauge    prometheus.Gauge
}

// OpenRedis prepares the use of a Redis. It connects to nothing: Run does.
func OpenRedis(cfg RedisConfig) (*Redis, error) {
	if cfg.Service == "" || cfg.Timeout <= 0 || cfg.Metrics == nil {
		return nil, errors.New("using Redis: a service, timeout or registerer is missing")
	}
	client, err := newClient(cfg.URL, cfg.TLS, cfg.Timeout)
	if err != nil {
		return nil, fmt.Errorf("using Redis: %w", err)
	}
	if cfg.Tracing == nil {
		cfg.Tracing = new(telemetry.Tracing)
	}
	r := &Redis{client: client, timeout: cfg.Timeout, tracing: cfg.Tracing, probe: keyPrefix(cfg.Service) + "{probe:" + rand.Text() + "}"}
	r.gauge = prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "glidepath_cache_redis_up", ConstLabels: prometheus.Labels{"cache": cfg.Service},
		Help: "1 while what is cached is shared through Redis, 0 while each replica is on its own.",
	})
	if err := register(cfg.Metrics, r.gauge); err != nil {
		return nil, errors.Join(err, client.Close())
	}
	return r, nil
}

// Up says whether Redis is used now.
func (r *Redis) Up() bool { return r.up.Load() }

// Probed says whether it is known if Redis is there. A replica that takes calls
// before would read for itself what others have read.
func (r *Redis) Probed() bool { return r.probed.Load() }

// Ready is an error until it is known whether Redis is there. It does not have to
// be there.
func (r *Redis) Ready() error {
	if r != nil && !r.Probed() {
		return errors.New("not known yet whether Redis is there")
	}
	return nil
}

// Close ends the connections. Caches that use r are closed before.
func (r *Redis) Close() error {
	if r == nil {
		return nil
	}
	return r.client.Close()
}

// Run tries Redis out until ctx ends: at once, and then about every second.
// What is tried is what caches do, so a Redis that answers but may not be
// written to, for instance, counts as away.
func (r *Redis) Run(ctx context.Context) {
	if r == nil {
		return
	}
	for {
		err := r.tryOut(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
		case r.up.CompareAndSwap(false, true):
			r.gauge.Set(1)
			slog.InfoContext(ctx, "redis is used")
		default:
			r.relapses.Store(0) // it has worked since the last probe
		}
		r.probed.Store(true)
		if wait(ctx, r.pause()) != nil {
			return
		}
	}
}

// pause gives the time to the next probe: longer each time that a probe went
// well and the calls after it did not.
func (r *Redis) pause() time.Duration {
	if r.up.Load() {
		return probeEvery
	}
	return min(probeEvery<<min(r.relapses.Load(), 5), maxHold)
}

func (r *Redis) tryOut(ctx context.Context) error {
	held := rand.Text()
	_, err := r.run(ctx, acquireScript, []string{r.probe, lockOf(r.probe)}, 0, held, lockLife.Milliseconds(), "", maxStored, maxAtOnce)
	if err == nil {
		_, err = r.run(ctx, releaseScript, []string{lockOf(r.probe)}, held)
	}
	return err
}

// run runs a script within the timeout. Any fault but the end of ctx takes Redis out
// of use.
func (r *Redis) run(ctx context.Context, s *redis.Script, keys []string, args ...any) (any, error) {
	return r.carry(ctx, 0, s, keys, args...)
}

// carryTime is how long so many bytes may take on top of what any use may.
func carryTime(size int) time.Duration { return time.Duration(size) * time.Second / bytesPerSecond }

// carry runs a script that moves so many bytes, which it has more time for.
func (r *Redis) carry(ctx context.Context, size int, s *redis.Script, keys []string, args ...any) (any, error) {
	reply, err := r.eval(ctx, size, s, keys, args...)
	if err != nil {
		r.failed(ctx, err)
		return nil, fmt.Errorf("asking redis: %w", err)
	}
	return reply, nil
}

func (r *Redis) eval(ctx context.Context, size int, s *redis.Script, keys []string, args ...any) (any, error) {
	ctx, cancel := context.WithTimeout(ctx, r.timeout+carryTime(size))
	defer cancel()
	return s.Run(ctx, r.client, keys, args...).Result()
}

// failed takes Redis out of use.
func (r *Redis) failed(ctx context.Context, err error) {
	if ctx.Err() == nil && r.up.CompareAndSwap(true, false) {
		r.relapses.Add(1)
		r.gauge.Set(0)
		slog.WarnContext(ctx, "redis is not used until it works again", "error", err)
	}
}

// ask is useFor for what caches can do without: that Redis refuses it, for want
// of room or of a right, does not take Redis out of use for them.
func (r *Redis) ask(ctx context.Context, size int, s *redis.Script, keys []string, args ...any) (any, error) {
	if !r.up.Load() {
		return nil, errAway
	}
	reply, err := r.eval(ctx, size, s, keys, args...)
	if err == nil {
		return reply, nil
	}
	if _, refused := errors.AsType[redis.Error](err); !refused {
		r.failed(ctx, err)
	}
	return nil, fmt.Errorf("asking redis: %w", err)
}

// use is run for the calls of caches.
func (r *Redis) use(ctx context.Context, s *redis.Script, keys []string, args ...any) (any, error) {
	if !r.up.Load() {
		return nil, errAway
	}
	return r.run(ctx, s, keys, args...)
}

// useFor is use for so many bytes.
func (r *Redis) useFor(ctx context.Context, size int, s *redis.Script, keys []string, args ...any) (any, error) {
	if !r.up.Load() {
		return nil, errAway
	}
	return r.carry(ctx, size, s, keys, args...)
}
