package ttl_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"hangar.io/glidepath/authz/ttl"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newCache(t *testing.T, size int) *ttl.Cache[string, int] {
	t.Helper()
	c, err := ttl.NewCache[string, int](size)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestAnEntryIsThereUntilItsEndAndNotAtIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, 2)
		c.Put("a", 1, time.Now().Add(time.Second))
		time.Sleep(time.Second - time.Nanosecond)
		if v, ok := c.Get("a", time.Now()); !ok || v != 1 {
			t.Errorf("just before its end: %d %v", v, ok)
		}
		time.Sleep(time.Nanosecond)
		if v, ok := c.Get("a", time.Now()); ok || v != 0 {
			t.Errorf("at its end: %d %v", v, ok)
		}
		if !c.Known("a") {
			t.Error("an entry that ended was never known")
		}
		c.Drop("a")
		if c.Known("a") {
			t.Error("an entry that was dropped is still known")
		}
	})
}

func TestTheOldestUnusedEntryMakesRoom(t *testing.T) {
	c, now := newCache(t, 2), time.Now()
	end := now.Add(time.Hour)
	c.Put("a", 1, end)
	c.Put("b", 2, end)
	c.Get("a", now)
	c.Put("c", 3, end)
	if c.Len() != 2 || c.Known("b") || !c.Known("a") {
		t.Errorf("%d entries, a %v, b %v", c.Len(), c.Known("a"), c.Known("b"))
	}
	if _, err := ttl.NewCache[string, int](0); err == nil {
		t.Error("a cache without room was made")
	}
}

func TestCallersOfOneKeyShareOneFill(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ttl.NewGroup[string, int](time.Minute)
		defer g.Close()
		var fills atomic.Int32
		fill := func(ctx context.Context) (int, error) {
			time.Sleep(time.Second)
			return int(fills.Add(1)), nil
		}
		var joined atomic.Int32
		var wg sync.WaitGroup
		for range 50 {
			wg.Go(func() {
				v, j, err := g.Do(t.Context(), "k", fill)
				if v != 1 || err != nil {
					t.Errorf("got %d %v", v, err)
				}
				if j {
					joined.Add(1)
				}
			})
		}
		wg.Wait()
		if fills.Load() != 1 || joined.Load() != 49 {
			t.Errorf("%d fills, %d joined", fills.Load(), joined.Load())
		}
		// The next caller starts anew.
		if v, j, _ := g.Do(t.Context(), "k", fill); v != 2 || j {
			t.Errorf("a later caller got %d, joined %v", v, j)
		}
	})
}

func TestAFillOutlivesTheCallerThatStartedIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ttl.NewGroup[string, int](time.Minute)
		defer g.Close()
		fill := func(ctx context.Context) (int, error) {
			select {
			case <-time.After(10 * time.Second):
				return 7, nil
			case <-ctx.Done():
				return 0, ctx.Err()
			}
		}
		leaving, leave := context.WithTimeout(t.Context(), time.Second)
		defer leave()
		if _, _, err := g.Do(leaving, "k", fill); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the caller that left got %v", err)
		}
		v, joined, err := g.Do(t.Context(), "k", fill)
		if v != 7 || !joined || err != nil {
			t.Errorf("the caller that joined got %d %v %v", v, joined, err)
		}
	})
}

func TestAFillIsBoundedByItsOwnDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := ttl.NewGroup[string, int](2 * time.Second)
		defer g.Close()
		start := time.Now()
		_, _, err := g.Do(t.Context(), "k", func(ctx context.Context) (int, error) {
			<-ctx.Done()
			return 0, ctx.Err()
		})
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 2*time.Second {
			t.Errorf("got %v after %s", err, time.Since(start))
		}
	})
}

func TestAPanicInAFillIsAnErrorForAllOfItsCallers(t *testing.T) {
	g := ttl.NewGroup[string, int](time.Minute)
	defer g.Close()
	_, _, err := g.Do(t.Context(), "k", func(context.Context) (int, error) {
		panic("broken") //nolint:forbidigo // what a bug would do
	})
	if err == nil || !strings.Contains(err.Error(), "broken") {
		t.Errorf("got %v", err)
	}
	if v, _, err := g.Do(t.Context(), "k", func(context.Context) (int, error) { return 1, nil }); v != 1 || err != nil {
		t.Errorf("the key is stuck: %d %v", v, err)
	}
}

func TestCloseEndsTheFillsAndWaitsForThem(t *testing.T) {
	g := ttl.NewGroup[string, int](time.Minute)
	started := make(chan struct{})
	var ended atomic.Bool
	result := make(chan error, 1)
	go func() {
		_, _, err := g.Do(context.WithoutCancel(t.Context()), "k", func(ctx context.Context) (int, error) {
			close(started)
			<-ctx.Done()
			ended.Store(true)
			return 0, ctx.Err()
		})
		result <- err
	}()
	<-started
	g.Close()
	if !ended.Load() {
		t.Error("Close returned before the fill had ended")
	}
	if err := <-result; !errors.Is(err, context.Canceled) {
		t.Errorf("the caller got %v", err)
	}
	if _, _, err := g.Do(t.Context(), "k", func(context.Context) (int, error) { return 1, nil }); !errors.Is(err, ttl.ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
	g.Close()
}

func TestAFillIsInTheTraceOfWhoStartedItAndTheOthersLinkToIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorded := tracetest.NewSpanRecorder()
		tracer := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorded)).Tracer("test")
		g := ttl.NewGroup[string, int](time.Second)
		defer g.Close()
		var fillIn trace.SpanContext
		release := make(chan struct{})
		call := func(name string) {
			ctx, span := tracer.Start(t.Context(), name)
			defer span.End()
			if _, _, err := g.Do(ctx, "key", func(ctx context.Context) (int, error) {
				fillIn = trace.SpanContextFromContext(ctx)
				<-release
				return 1, nil
			}); err != nil {
				t.Error(err)
			}
		}
		var wg sync.WaitGroup
		wg.Go(func() { call("first") })
		synctest.Wait()
		wg.Go(func() { call("second") })
		synctest.Wait()
		close(release)
		wg.Wait()
		spans := map[string]sdktrace.ReadOnlySpan{}
		for _, s := range recorded.Ended() {
			spans[s.Name()] = s
		}
		if first := spans["first"]; !fillIn.Equal(first.SpanContext()) || len(first.Links()) != 0 {
			t.Errorf("the fill is in %v with links %v, want it in %v", fillIn, first.Links(), first.SpanContext())
		}
		if links := spans["second"].Links(); len(links) != 1 || !links[0].SpanContext.Equal(fillIn) {
			t.Errorf("the second caller links to %v, want %v", links, fillIn)
		}
	})
}

func TestAWeighedCacheKeepsSoManyBytesAndNoMore(t *testing.T) {
	c, err := ttl.NewWeighedCache[string, string](4, 10, func(v string) int { return len(v) })
	if err != nil {
		t.Fatal(err)
	}
	end := time.Now().Add(time.Hour)
	kept := func(want ...string) {
		t.Helper()
		for _, key := range []string{"a", "b", "c", "d", "e"} {
			if _, ok := c.Get(key, time.Now()); ok != slices.Contains(want, key) {
				t.Errorf("%s is kept: %v, want %v", key, ok, want)
			}
		}
	}
	put := func(key string, n int) { c.Put(key, strings.Repeat("x", n), end) }
	put("a", 4)
	put("b", 6)
	kept("a", "b")
	put("c", 1) // one byte too many: the oldest goes
	kept("b", "c")
	for range 10 { // in its own place, it counts once
		put("b", 9)
	}
	kept("b", "c")
	put("d", 11)
	kept("b", "c")
	put("b", 11) // an older value of the key must not be taken for it
	kept("c")
	c.Drop("c")
	put("a", 10)
	kept("a")
	for _, key := range []string{"a", "b", "c", "d", "e"} {
		put(key, 1)
	}
	kept("b", "c", "d", "e")
	put("a", 7)
	kept("c", "d", "e", "a")
	if _, err := ttl.NewWeighedCache[string, string](0, 1, nil); err == nil {
		t.Error("a cache of no entries")
	}
}
