package cache

import (
	"context"
	"crypto/rand"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/redis/go-redis/v9"
)

var (
	//go:embed take.lua
	takeText string
	//go:embed finish.lua
	finishText string

	takeScript   = redis.NewScript(takeText)
	finishScript = redis.NewScript(finishText)
)

// ErrLost says that a lease may be another's by now.
var ErrLost = errors.New("the lease is lost")

// LeaseConfig says what a lease is. All of it is required.
type LeaseConfig struct {
	// Redis is what replicas share. The lease does not own it.
	Redis *Redis
	// Service is whose it is, as in Config.Name, and Name is what it is for.
	Service, Name string
	// Life is how long a lease outlives a holder that is gone. One that is
	// there renews it three times in that.
	Life time.Duration
	// Rest is for how long nobody does again what was done.
	Rest time.Duration
	// Patience is how long Redis may be away before it is done without the lease,
	// by each replica that is left alone.
	Patience time.Duration
}

// Lease has one replica of a service do something that it is enough to do once.
// It keeps replicas from doing the same, as far as Redis can be believed: what
// is done under it must do no harm when it is done twice.
type Lease struct {
	redis      *Redis
	key        string
	life, rest time.Duration
	patience   time.Duration
}

// NewLease gives a lease. It asks Redis for nothing.
func NewLease(cfg LeaseConfig) (*Lease, error) {
	if cfg.Redis == nil || cfg.Service == "" || cfg.Name == "" || cfg.Life < time.Millisecond || cfg.Rest < time.Millisecond || cfg.Patience <= 0 {
		return nil, errors.New("making a lease: a Redis, name or time is missing")
	}
	return &Lease{redis: cfg.Redis, key: keyPrefix(cfg.Service) + "{lease:" + cfg.Name + "}", life: cfg.Life, rest: cfg.Rest, patience: cfg.Patience}, nil
}

// Do has work done by one replica: it waits for the lease, and then calls work
// unless another replica has done it in the last LeaseConfig.Rest. While Redis
// is away nobody can tell: it waits, and after LeaseConfig.Patience calls work all
// the same.
//
// The context of work ends, with ErrLost as its cause, before another replica
// can have the lease; whatever work does until it has noticed is not fenced.
// An error of work gives the lease up and is returned, as is the end of ctx.
func (l *Lease) Do(ctx context.Context, work func(ctx context.Context) error) error {
	told := time.Now() // when Redis last said something
	for {
		token, asked := rand.Text(), time.Now()
		reply, err := l.redis.use(ctx, takeScript, []string{l.key}, token, l.life.Milliseconds(), l.rest.Milliseconds())
		if err == nil {
			told = asked
		}
		switch {
		case err != nil && asked.Sub(told) >= l.patience:
			slog.InfoContext(ctx, "without Redis there is no lease, and work is done alone", "lease", l.key)
			return work(ctx)
		case err != nil && !errors.Is(err, errAway):
			slog.DebugContext(ctx, "a lease was not taken", "error", err)
		case reply == "done":
			return nil
		case reply == "taken":
			err := l.hold(ctx, token, asked, work)
			if !errors.Is(err, ErrLost) {
				return err
			}
			told = time.Now()
			slog.InfoContext(ctx, "a lease was lost and is waited for again", "error", err)
		}
		if err := wait(ctx, l.life/5); err != nil {
			return fmt.Errorf("waiting for a lease: %w", err)
		}
	}
}

// hold calls work while the lease is renewed. It was taken no earlier than at
// a moment of this process's clock.
func (l *Lease) hold(ctx context.Context, token string, taken time.Time, work func(ctx context.Context) error) error {
	held, lose := context.WithCancelCause(ctx)
	defer lose(nil)
	renewed := make(chan struct{})
	go func() {
		defer close(renewed)
		lose(l.renew(held, token, taken))
	}()
	err := work(held)
	lost := context.Cause(held)
	lose(nil)
	<-renewed
	if lost != nil && ctx.Err() == nil {
		return lost
	}

	// What follows must happen even if ctx is over.
	ctx = context.WithoutCancel(ctx)
	script, life := finishScript, l.rest
	if err != nil || lost != nil {
		script = releaseScript
	}
	if reply, asked := l.redis.use(ctx, script, []string{l.key}, token, life.Milliseconds()); asked != nil {
		slog.DebugContext(ctx, "a lease was not given up", "error", asked)
	} else if reply != int64(1) && err == nil {
		return ErrLost // another may have begun; who did it first does not matter
	}
	return err
}

// renew keeps the lease until held ends, and gives ErrLost when another may have
// it: when Redis says so, or when it was not renewed for so long.
func (l *Lease) renew(held context.Context, token string, since time.Time) error {
	tick := time.NewTicker(l.life / 3)
	defer tick.Stop()
	for {
		// The last renewal holds for Life from when it was asked for, so the
		// work ends before, however late this goroutine runs.
		left, cancel := context.WithDeadlineCause(held, since.Add(l.life), ErrLost)
		select {
		case <-left.Done():
		case <-tick.C:
			asked := time.Now()
			reply, err := l.redis.use(left, keepScript, []string{l.key}, token, l.life.Milliseconds())
			switch {
			case err != nil:
				slog.DebugContext(held, "a lease was not renewed", "error", err)
			case reply == int64(1):
				since = asked
			default:
				cancel()
				return ErrLost
			}
		}
		over := left.Err() != nil
		cause := context.Cause(left)
		cancel()
		if over {
			return cause
		}
	}
}
