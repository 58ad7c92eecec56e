package cache

import (
	"context"
	"crypto/rand"
	_ "embed" // the scripts
	"errors"
	"fmt"
	"log/slog"
	"math"
	"strconv"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"
	"go.opentelemetry.io/otel/trace/noop"
)

const (
	// lockLife is how long a lock outlives its holder.
	lockLife = 3 * time.Second
	// minLife is how long a value stays at least, for those who waited for it,
	// however long its reading took.
	minLife = time.Second
	// stampSize is that of a value's stamp: 16 digits each for when its reading
	// began and until when it is one.
	stampSize = 32
	// noEnd is the second half of the stamp of a value that is as old as whoever
	// asks for it lets it be.
	noEnd = "9999999999999999"
	// maxStored bounds what Redis sends for a value: its stamp and what was
	// sealed.
	maxStored = stampSize + maxSealed
	// maxAtOnce is the largest value that comes with the reply that says that
	// it is there. A larger one is asked for by itself, with time for its size.
	maxAtOnce = 1 << 20
	// maxMicroseconds is what a time.Duration holds.
	maxMicroseconds = int64(math.MaxInt64 / time.Microsecond)
)

var (
	//go:embed acquire.lua
	acquireText string
	//go:embed keep.lua
	keepText string
	//go:embed fetch.lua
	fetchText string
	//go:embed release.lua
	releaseText string
	//go:embed store.lua
	storeText string
	//go:embed append.lua
	appendText string
	//go:embed entries.lua
	entriesText string

	acquireScript = redis.NewScript(acquireText)
	fetchScript   = redis.NewScript(fetchText)
	keepScript    = redis.NewScript(keepText)
	releaseScript = redis.NewScript(releaseText)
	storeScript   = redis.NewScript(storeText)
	appendScript  = redis.NewScript(appendText)
	entriesScript = redis.NewScript(entriesText)
)

// found is what acquire came to: a sealed value, the lock, or neither, which
// means that another replica is reading.
type found struct {
	sealed []byte
	age    time.Duration
	large  int    // bytes of a value that is there and was not sent
	lock   string // the token that holds the lock
	stamp  string // of the value, or when the reading by the lock's holder began
}

// until gives the stamp of a value that was read under the lock and stays so
// long from when its reading began.
func (f found) until(stays time.Duration) (string, error) {
	began, err := strconv.ParseInt(f.stamp, 10, 64)
	if err != nil {
		return "", fmt.Errorf("asking redis: when a reading began: %w", err)
	}
	return fmt.Sprintf("%s%016d", f.stamp, began+stays.Microseconds()), nil
}

// left says for how long a value that was found is one; forever, when whoever
// asks decides.
func (f found) left() (left time.Duration, forever bool, err error) {
	if len(f.stamp) != stampSize {
		return 0, false, errors.New("asking redis: another stamp")
	}
	began, last := f.stamp[:stampSize/2], f.stamp[stampSize/2:]
	if last == noEnd {
		return 0, true, nil
	}
	from, err1 := strconv.ParseInt(began, 10, 64)
	to, err2 := strconv.ParseInt(last, 10, 64)
	if err := errors.Join(err1, err2); err != nil {
		return 0, false, fmt.Errorf("asking redis: another stamp: %w", err)
	}
	return time.Duration(to-from)*time.Microsecond - f.age, false, nil
}

func lockOf(key string) string { return key + ":fill" }

// acquire gives the value of key if it is at most maxAge old, else tries to
// take the lock for reading it. A value with the stamp unreadable counts as
// absent.
func (r *Redis) acquire(ctx context.Context, key string, maxAge time.Duration, unreadable string) (found, error) {
	f, err := r.look(ctx, key, maxAge, unreadable, maxAtOnce)
	if err == nil && f.large > 0 {
		f.sealed, err = r.fetch(ctx, key, f)
	}
	return f, err
}

// look is acquire that is sent no value of more than atOnce bytes, and learns its
// size instead.
func (r *Redis) look(ctx context.Context, key string, maxAge time.Duration, unreadable string, atOnce int) (found, error) {
	held := rand.Text()
	ctx, span := r.begin(ctx)
	defer span.End()
	reply, err := r.use(ctx, acquireScript, []string{key, lockOf(key)},
		maxAge.Microseconds(), held, lockLife.Milliseconds(), unreadable, maxStored, atOnce)
	if err != nil {
		span.SetStatus(codes.Error, err.Error())
		return found{}, err
	}
	f, err := parseFound(reply, held)
	if err == nil && f.age > maxAge {
		return found{}, fmt.Errorf("asking redis: a value that is %s old", f.age)
	}
	return f, err
}

// fetch gives a large value that was found, or nothing if it is gone since.
func (r *Redis) fetch(ctx context.Context, key string, f found) ([]byte, error) {
	reply, err := r.useFor(ctx, f.large, fetchScript, []string{key}, f.stamp, maxStored)
	if err != nil {
		return nil, err
	}
	sealed, ok := reply.(string)
	if !ok {
		return nil, fmt.Errorf("asking redis: a reply of %T", reply)
	}
	if sealed == "" {
		return nil, nil
	}
	return []byte(sealed), nil
}

// begin makes the span of a look into Redis that a call waits for. The probes
// of Redis belong to no call.
func (r *Redis) begin(ctx context.Context) (context.Context, trace.Span) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, noop.Span{}
	}
	return r.tracing.Start(ctx, "redis acquire", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		attribute.String("db.system.name", "redis"), attribute.String("db.operation.name", "EVALSHA"),
	))
}

func parseFound(reply any, held string) (found, error) {
	fields, ok := reply.([]any)
	if !ok || len(fields) != 4 {
		return found{}, fmt.Errorf("asking redis: a reply of %T", reply)
	}
	what, ok1 := fields[0].(string)
	stamp, ok2 := fields[1].(string)
	age, ok3 := fields[2].(int64)
	sealed, ok4 := fields[3].(string)
	if !ok1 || !ok2 || !ok3 || !ok4 || age < 0 || age > maxMicroseconds {
		return found{}, errors.New("asking redis: a reply of other types")
	}
	switch what {
	case "value":
		return found{sealed: []byte(sealed), stamp: stamp, age: time.Duration(age) * time.Microsecond}, nil
	case "large":
		size, err := strconv.Atoi(sealed)
		if err != nil || size <= 0 || size > maxStored {
			return found{}, errors.New("asking redis: a value of an impossible size")
		}
		return found{large: size, stamp: stamp, age: time.Duration(age) * time.Microsecond}, nil
	case "lock":
		return found{lock: held, stamp: stamp}, nil
	default:
		return found{}, nil
	}
}

// keep holds a lock until the returned function is called, which returns when
// nothing of keep is left.
func (r *Redis) keep(ctx context.Context, key, held string) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var done sync.WaitGroup
	done.Go(func() {
		tick := time.NewTicker(lockLife / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			// Without the lock another replica reads as well, and the
			// younger value is kept.
			if _, err := r.use(ctx, keepScript, []string{lockOf(key)}, held, lockLife.Milliseconds()); err != nil && ctx.Err() == nil {
				slog.DebugContext(ctx, "a lock was not kept", "error", err)
			}
		}
	})
	return func() {
		cancel()
		done.Wait()
	}
}

// release gives a lock up. If it cannot, the lock ends by itself.
func (r *Redis) release(ctx context.Context, key, held string) {
	if _, err := r.use(ctx, releaseScript, []string{lockOf(key)}, held); err != nil {
		slog.DebugContext(ctx, "a lock was not released", "error", err)
	}
}

// store puts a value where the other replicas find it, for so long from when its
// reading began, and gives the lock up. If it cannot, they read for themselves.
func (r *Redis) store(ctx context.Context, key, held, stamp string, sealed []byte, stays time.Duration) error {
	_, err := r.useFor(ctx, len(sealed), storeScript, []string{key, lockOf(key)},
		held, stamp, sealed, stays.Microseconds(), minLife.Microseconds())
	return err
}
