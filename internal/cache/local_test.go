package cache

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

// rule: R241
func TestAValueIsAsOldAsTheBeginningOfItsReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, nil)
		slow := func(value string) Fill[string] {
			return func(context.Context) (string, error) {
				time.Sleep(500 * time.Millisecond) // the source is slow
				return value, nil
			}
		}
		get := func(fill Fill[string]) string {
			t.Helper()
			v, err := c.Get(t.Context(), "k", 2*time.Second, fill)
			if err != nil {
				t.Fatal(err)
			}
			return v
		}
		get(slow("first")) // began at 0, ended at 0.5 s
		time.Sleep(1499 * time.Millisecond)
		if got := get(slow("second")); got != "first" {
			t.Errorf("after a little less than 2 s: %q", got)
		}
		time.Sleep(2 * time.Millisecond)
		if got := get(slow("second")); got != "second" {
			t.Errorf("after a little more than 2 s: %q", got)
		}
	})
}

func TestACallerIsNotGivenAReadThatBeganTooLongBefore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, nil)
		reads := 0
		slow := func(context.Context) (string, error) {
			reads++
			n := reads
			time.Sleep(5 * time.Second) // the source is very slow
			return fmt.Sprint(n), nil
		}
		after := func(d time.Duration, want string) func() {
			done := make(chan struct{})
			go func() {
				defer close(done)
				time.Sleep(d)
				if got, err := c.Get(t.Context(), "k", 2*time.Second, slow); err != nil || got != want {
					t.Errorf("the caller after %s got %q, %v, want %q", d, got, err, want)
				}
			}()
			return func() { <-done }
		}
		for _, wait := range []func(){
			after(0, "1"), after(2*time.Second, "1"),
			after(2001*time.Millisecond, "2"), after(4*time.Second, "2"),
			after(6*time.Second, "2"), // the second read began after 5 s
		} {
			wait()
		}
		if reads != 2 {
			t.Errorf("%d reads, want 2", reads)
		}
	})
}

func TestValuesAreForgottenOnceTheyAreTooOldForAnybody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, nil)
		expect(t, c, "a", time.Second, &source{value: "12345"}, "12345")
		expect(t, c, "b", time.Minute, &source{value: "123"}, "123")
		if got := testutil.ToFloat64(c.metrics.localBytes); got != 8 {
			t.Errorf("%v bytes are kept, want 8", got)
		}
		if got := testutil.ToFloat64(c.metrics.localCount); got != 2 {
			t.Errorf("%v values are kept, want 2", got)
		}
		time.Sleep(2 * time.Second)
		if got := testutil.ToFloat64(c.metrics.localBytes); got != 3 {
			t.Errorf("%v bytes are kept later, want 3", got)
		}
		if got := testutil.ToFloat64(c.metrics.localCount); got != 1 {
			t.Errorf("%v values are kept later, want 1", got)
		}
		expect(t, c, "b", 2*time.Minute, &source{value: "123"}, "123")
		c.Close()
		if got := testutil.ToFloat64(c.metrics.localCount); got != 0 {
			t.Errorf("%v values are kept at the end, want none", got)
		}
	})
}

func TestAValueThatTookTheOldOnesPlaceOutlivesItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, nil)
		expect(t, c, "k", 10*time.Second, &source{value: "old"}, "old") // forgotten after 10 s
		time.Sleep(8 * time.Second)
		expect(t, c, "k", 7*time.Second, &source{value: "younger"}, "younger") // forgotten after 15 s
		time.Sleep(4 * time.Second)
		expect(t, c, "k", 7*time.Second, &source{value: "no"}, "younger")
	})
}

func TestNoMoreIsKeptThanMayBe(t *testing.T) {
	c := newCache(t, nil, func(cfg *Config[string]) { cfg.LocalBytes = 10 })
	a, b, d := &source{value: "aaaa"}, &source{value: "bbbb"}, &source{value: "dddd"}
	expect(t, c, "a", time.Hour, a, "aaaa")
	expect(t, c, "b", time.Hour, b, "bbbb")
	expect(t, c, "a", time.Hour, a, "aaaa")
	expect(t, c, "d", time.Hour, d, "dddd") // takes the place of b, which was used before a
	expect(t, c, "a", time.Hour, a, "aaaa")
	a.expectReads(t, 1)
	expect(t, c, "b", time.Hour, b, "bbbb")
	b.expectReads(t, 2)

	large := &source{value: strings.Repeat("x", 11)}
	expect(t, c, "large", time.Hour, large, large.value)
	expect(t, c, "large", time.Hour, large, large.value)
	large.expectReads(t, 2)
	if got := testutil.ToFloat64(c.metrics.localBytes); got > 10 {
		t.Errorf("%v bytes are kept, want 10 at most", got)
	}
}

func TestClosingEndsEveryRead(t *testing.T) {
	c := newCache(t, nil)
	s := &source{gate: make(chan struct{}), began: make(chan struct{}, 1)}
	wait := calls(t, 3, c, "k", s)
	<-s.began
	c.Close()
	for _, err := range wait() {
		if !errors.Is(err, context.Canceled) && !errors.Is(err, ErrClosed) {
			t.Errorf("a call ended with %v", err)
		}
	}
	if _, err := c.Get(t.Context(), "k", time.Hour, s.fill); !errors.Is(err, ErrClosed) {
		t.Errorf("a call of a closed cache: %v", err)
	}
	c.Close() // twice is harmless
}

func TestAReadEndsWhenItsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, nil, func(cfg *Config[string]) { cfg.FillTime = 30 * time.Second })
		start := time.Now()
		_, err := c.Get(t.Context(), "k", time.Hour, (&source{gate: make(chan struct{})}).fill)
		if !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != 30*time.Second {
			t.Errorf("after %s: %v", time.Since(start), err)
		}
	})
}
