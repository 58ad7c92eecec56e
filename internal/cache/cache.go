package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"

	"hangar.io/glidepath/internal/seal"
	"hangar.io/glidepath/internal/telemetry"
)

// MaxFillTime is the longest that one read of a source may take.
const MaxFillTime = 90 * time.Second

var (
	// ErrBusy says that as many reads are under way as there may be.
	ErrBusy = errors.New("too many reads are under way")
	// ErrClosed says that the cache was closed.
	ErrClosed = errors.New("the cache is closed")
)

// Codec turns values into bytes and back. Its methods are called concurrently.
type Codec[T any] interface {
	Encode(T) ([]byte, error)
	// Decode reads what Encode gave, here or in another replica, possibly of
	// another version. An error means that the value counts as absent.
	Decode([]byte) (T, error)
	// Size is roughly what a value takes in memory, in bytes.
	Size(T) int
}

// Config says how a cache works. All but Redis and Compressed is required.
type Config[T any] struct {
	// Name is the service's, in keys and metrics.
	Name  string
	Codec Codec[T]
	// Compressed says that what Codec encodes is compressed already.
	Compressed bool
	// Seal closes what goes to Redis.
	Seal seal.Keys
	// LocalBytes is how much is kept in this process. A larger value is given
	// to those who wait for it and not kept.
	LocalBytes int64
	// FillTime is how long one read may take, at most MaxFillTime. What another
	// replica was waited for before is not part of it.
	FillTime time.Duration
	// ShareTime is how long this process waits for a read that another replica
	// is said to be at, before it reads for itself. At most FillTime.
	ShareTime time.Duration
	// Flights is how many keys may be read at once, here or by another replica
	// that is waited for.
	Flights int
	// Metrics counts what happens.
	Metrics prometheus.Registerer
	// Redis is what replicas share; nil when there is none. The cache does not
	// own it.
	Redis *Redis
}

func (cfg Config[T]) validate() error {
	var faults []error
	if cfg.Name == "" || cfg.Codec == nil || cfg.Metrics == nil {
		faults = append(faults, errors.New("a name, codec or registerer is missing"))
	}
	if cfg.LocalBytes <= 0 || cfg.Flights <= 0 {
		faults = append(faults, errors.New("a bound is missing"))
	}
	if cfg.FillTime <= 0 || cfg.FillTime > MaxFillTime {
		faults = append(faults, fmt.Errorf("a read may take up to %s, not %s", MaxFillTime, cfg.FillTime))
	}
	if cfg.ShareTime <= 0 || cfg.ShareTime > cfg.FillTime {
		faults = append(faults, fmt.Errorf("another's read is waited for up to %s, not %s", cfg.FillTime, cfg.ShareTime))
	}
	return errors.Join(faults...)
}

// Fill reads a value from its source. Its context is not the caller's: it ends
// after Config.FillTime or with the cache, and carries of the caller that began
// it nothing but the trace.
type Fill[T any] func(ctx context.Context) (T, error)

// Lasting is a Fill that also says for how long its value is kept, from when it
// was read: more than 0.
type Lasting[T any] func(ctx context.Context) (value T, life time.Duration, err error)

// anyAge is how old a value may be that has a time of its own.
const anyAge = 10 * 365 * 24 * time.Hour

// Cache keeps values of one type. It is safe for concurrent use. A value is
// shared by all who get it: read it only.
type Cache[T any] struct {
	cfg     Config[T]
	vault   *vault[T]
	metrics *metrics

	// base is the context of every fill. It ends with Close.
	base   context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	closed  bool
	local   *local[T]
	flights map[string]*flight[T]
	quiet   chan struct{} // closed when there is no flight
	flying  sync.WaitGroup
}

// New gives an empty cache. Close ends it.
func New[T any](cfg Config[T]) (*Cache[T], error) {
	if err := cfg.validate(); err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	vault, err := newVault(cfg)
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	m, err := newMetrics(cfg.Metrics, cfg.Name)
	if err != nil {
		return nil, fmt.Errorf("making a cache: %w", err)
	}
	c := &Cache[T]{cfg: cfg, vault: vault, metrics: m, flights: map[string]*flight[T]{}, quiet: make(chan struct{})}
	close(c.quiet)
	if c.local, err = newLocal[T](cfg.LocalBytes, m.localBytes, m.localCount); err != nil {
		return nil, err
	}
	c.base, c.cancel = context.WithCancel(context.Background())
	return c, nil
}

// Close ends the reads that are under way, waits for them, and forgets all
// values. Calls that wait get an error, and so do later ones.
func (c *Cache[T]) Close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.flying.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.local.clear()
}

// Get gives the value of key whose reading began at most maxAge before this
// call: from this process, from Redis, or by fill. Callers of one key share one
// read, over all replicas. It takes more than one only if the read that they
// find under way began too long ago.
//
// When ctx ends the call does, with ctx's error; the read goes on for others.
// A failed read is told to all who wait for it and is not kept.
func (c *Cache[T]) Get(ctx context.Context, key string, maxAge time.Duration, fill Fill[T]) (T, error) {
	return c.get(ctx, key, maxAge, func(ctx context.Context) (T, time.Duration, error) {
		value, err := fill(ctx)
		return value, 0, err
	})
}

// GetLasting is Get of a value that is kept for a time that its own reading
// decides, however long that took: callers of one key ask for it in no other way.
func (c *Cache[T]) GetLasting(ctx context.Context, key string, fill Lasting[T]) (T, error) {
	return c.get(ctx, key, anyAge, fill)
}

func (c *Cache[T]) get(ctx context.Context, key string, maxAge time.Duration, fill Lasting[T]) (T, error) {
	oldest := time.Now().Add(-maxAge)
	for {
		f, hit, err := c.find(ctx, key, oldest, maxAge, fill)
		if err != nil {
			c.metrics.gets(resultError)
			return *new(T), err
		}
		if hit != nil {
			c.metrics.gets(resultLocal)
			return hit.value, nil
		}
		f.link(ctx)
		select {
		case <-f.done:
		case <-ctx.Done():
			c.metrics.gets(resultLeft)
			return *new(T), fmt.Errorf("waiting for a read: %w", ctx.Err())
		}
		if f.err != nil {
			c.metrics.gets(resultError)
			return *new(T), f.err
		}
		// The next read begins after this call, so the loop ends.
		if !f.began.Before(oldest) {
			c.metrics.gets(f.result)
			return f.value, nil
		}
	}
}

// find gives the value if it is here, else the read of it that is under way,
// else a new one.
func (c *Cache[T]) find(ctx context.Context, key string, oldest time.Time, maxAge time.Duration, fill Lasting[T]) (*flight[T], *entry[T], error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, nil, ErrClosed
	}
	if e := c.local.get(key); e != nil && !e.began.Before(oldest) && time.Now().Before(e.until) {
		return nil, e, nil
	}
	if f := c.flights[key]; f != nil {
		return f, nil, nil
	}
	if len(c.flights) >= c.cfg.Flights {
		return nil, nil, ErrBusy
	}
	f := &flight[T]{cache: c, key: key, maxAge: maxAge, fill: fill, work: trace.SpanContextFromContext(ctx), done: make(chan struct{})}
	if len(c.flights) == 0 {
		c.quiet = make(chan struct{})
	}
	c.flights[key] = f
	life := telemetry.Detach(c.base, ctx)
	c.flying.Go(func() { f.run(life) })
	return f, nil, nil
}

// Quiet waits until no read is under way in this process, for those whose reads
// can wait. That callers begin no other right after is not promised.
func (c *Cache[T]) Quiet(ctx context.Context) error {
	c.mu.Lock()
	quiet := c.quiet
	c.mu.Unlock()
	select {
	case <-quiet:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for the reads of others: %w", ctx.Err())
	}
}

// keep puts a value whose reading began at some moment into the local layer.
func (c *Cache[T]) keep(key string, value T, began, until time.Time) {
	e := &entry[T]{value: value, began: began, until: until, size: int64(c.cfg.Codec.Size(value))}
	c.local.put(key, e, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.local.drop(key, e)
	})
}
