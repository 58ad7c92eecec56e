package cache

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"
)

// TestAnyCache holds whether a cache is on its own or shares through Redis.
func TestAnyCache(t *testing.T) {
	for name, start := range map[string]func(*testing.T) func(*testing.T) *Redis{
		"in memory":                 func(*testing.T) func(*testing.T) *Redis { return func(*testing.T) *Redis { return nil } },
		"with a Redis that is away": func(*testing.T) func(*testing.T) *Redis { return func(t *testing.T) *Redis { return awayRedis(t) } },
		"with miniredis": func(*testing.T) func(*testing.T) *Redis {
			return func(t *testing.T) *Redis { return startMini(t).open(t) }
		},
		"with redis": emptied(func(t *testing.T) (string, *redis.Client) {
			url := realRedis(t)
			return url, clientOf(t, url)
		}),
		"with a cluster": emptied(func(t *testing.T) (string, *redis.Client) {
			real, admin := cluster(t)
			return real + "?addr=" + admin.Options().Addr, admin // a second address makes it one
		}),
	} {
		t.Run(name, func(t *testing.T) {
			open := start(t)
			for form, compressed := range map[string]bool{"": false, ", compressed already": true} {
				for name, check := range conformance {
					t.Run(name+form, func(t *testing.T) {
						check(t, newCache(t, open(t), tight, func(cfg *Config[string]) { cfg.Compressed = compressed }))
					})
				}
			}
		})
	}
}

// emptied gives one Redis again and again, empty.
func emptied(start func(*testing.T) (url string, admin *redis.Client)) func(*testing.T) func(*testing.T) *Redis {
	return func(t *testing.T) func(*testing.T) *Redis {
		url, admin := start(t)
		return func(t *testing.T) *Redis {
			if err := admin.FlushAll(t.Context()).Err(); err != nil {
				t.Fatal(err)
			}
			r := openRedis(t, url)
			eventually(t, "Redis to be used", r.Up)
			return r
		}
	}
}

// tight makes bounds that a test reaches.
func tight(cfg *Config[string]) { cfg.Flights = 3 }

var conformance = map[string]func(*testing.T, *Cache[string]){
	"a value is read once and then kept": func(t *testing.T, c *Cache[string]) {
		s := &source{value: "v"}
		expect(t, c, "k", time.Hour, s, "v")
		expect(t, c, "k", time.Hour, s, "v")
		s.expectReads(t, 1)
		for result, want := range map[result]float64{resultFill: 1, resultLocal: 1, resultShared: 0, resultError: 0} {
			if got := testutil.ToFloat64(c.metrics.calls.WithLabelValues(string(result))); got != want {
				t.Errorf("%v calls count as %s, want %v", got, result, want)
			}
		}
	},
	"another key is another value": func(t *testing.T, c *Cache[string]) {
		expect(t, c, "a", time.Hour, &source{value: "1"}, "1")
		expect(t, c, "b", time.Hour, &source{value: "2"}, "2")
		expect(t, c, "a", time.Hour, &source{value: "3"}, "1")
	},
	"a value that is too old is read again": func(t *testing.T, c *Cache[string]) {
		expect(t, c, "k", time.Hour, &source{value: "old"}, "old")
		expect(t, c, "k", 0, &source{value: "new"}, "new")
	},
	"an empty value is a value": func(t *testing.T, c *Cache[string]) {
		s := &source{}
		expect(t, c, "k", time.Hour, s, "")
		expect(t, c, "k", time.Hour, s, "")
		s.expectReads(t, 1)
	},
	"callers share one read": func(t *testing.T, c *Cache[string]) {
		s := &source{value: "v", gate: make(chan struct{}), began: make(chan struct{}, 1)}
		wait := calls(t, 50, c, "k", s)
		<-s.began
		close(s.gate)
		for _, err := range wait() {
			if err != nil {
				t.Error(err)
			}
		}
		s.expectReads(t, 1)
	},
	"a caller that leaves ends its wait and not the read": func(t *testing.T, c *Cache[string]) {
		s := &source{value: "v", gate: make(chan struct{}), began: make(chan struct{}, 1)}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := c.Get(ctx, "k", time.Hour, s.fill)
			left <- err
		}()
		<-s.began
		leave()
		if err := <-left; !errors.Is(err, context.Canceled) {
			t.Errorf("the caller that left got %v", err)
		}
		close(s.gate)
		expect(t, c, "k", time.Hour, s, "v")
		s.expectReads(t, 1)
	},
	"a failure is told to all and not kept": func(t *testing.T, c *Cache[string]) {
		broken := &source{err: errors.New("broken"), gate: make(chan struct{}), began: make(chan struct{}, 1)}
		wait := calls(t, 5, c, "k", broken)
		<-broken.began
		close(broken.gate)
		for _, err := range wait() {
			if !errors.Is(err, broken.err) {
				t.Errorf("a caller got %v", err)
			}
		}
		expect(t, c, "k", time.Hour, &source{value: "v"}, "v")
	},
	"a panic is a failure": func(t *testing.T, c *Cache[string]) {
		odd := func(context.Context) (string, error) { panic("odd") } //nolint:forbidigo // what is tested
		if _, err := c.Get(t.Context(), "k", time.Hour, odd); err == nil {
			t.Error("no error")
		}
		expect(t, c, "k", time.Hour, &source{value: "v"}, "v")
	},
	"only so many reads are under way": func(t *testing.T, c *Cache[string]) {
		s := &source{value: "v", gate: make(chan struct{}), began: make(chan struct{}, 3)}
		var waits []func() []error
		for i := range 3 {
			waits = append(waits, calls(t, 1, c, fmt.Sprint(i), s))
			<-s.began
		}
		if _, err := c.Get(t.Context(), "one more", time.Hour, s.fill); !errors.Is(err, ErrBusy) {
			t.Errorf("one more gets %v", err)
		}
		close(s.gate)
		for _, wait := range waits {
			if errs := wait(); errs[0] != nil {
				t.Error(errs[0])
			}
		}
		expect(t, c, "one more", time.Hour, s, "v")
	},
	"a value that cannot be shared is a value": func(t *testing.T, c *Cache[string]) {
		expect(t, c, "k", time.Hour, &source{value: "cannot be encoded"}, "cannot be encoded")
		// The lock is given up, so nobody waits for it.
		expect(t, c, "k", 0, &source{value: "v"}, "v")
	},
	"a value that is put is there, and takes no other's place": func(t *testing.T, c *Cache[string]) {
		s := &source{value: "read"}
		if err := c.Put(t.Context(), "k", time.Hour, "put"); err != nil {
			t.Error(err)
		}
		expect(t, c, "k", time.Hour, s, "put")
		if err := c.Put(t.Context(), "k", time.Hour, "put again"); err != nil {
			t.Error(err)
		}
		expect(t, c, "k", time.Hour, s, "put")
		s.expectReads(t, 0)
		_ = c.Put(t.Context(), "odd", time.Hour, "cannot be encoded") // it can where there is no Redis
		expect(t, c, "odd", 0, s, "read")                             // no lock is left behind
	},
	"those who can wait do so until no read is under way": func(t *testing.T, c *Cache[string]) {
		if err := c.Quiet(t.Context()); err != nil {
			t.Error(err)
		}
		s := &source{value: "v", gate: make(chan struct{}), began: make(chan struct{}, 2)}
		waits := []func() []error{calls(t, 1, c, "a", s), calls(t, 1, c, "b", s)}
		<-s.began
		<-s.began
		soon, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
		defer cancel()
		if err := c.Quiet(soon); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("while reads are under way: %v", err)
		}
		quiet := make(chan error)
		go func() { quiet <- c.Quiet(t.Context()) }()
		close(s.gate)
		if err := <-quiet; err != nil {
			t.Error(err)
		}
		for _, wait := range waits {
			if errs := wait(); errs[0] != nil {
				t.Error(errs[0])
			}
		}
	},
	"callers of many keys and ages at once": func(t *testing.T, c *Cache[string]) {
		var all sync.WaitGroup
		for i := range 60 {
			all.Go(func() {
				key, maxAge := fmt.Sprint(i%3), time.Duration(i%2)*time.Hour
				got, err := c.Get(t.Context(), key, maxAge, (&source{value: key}).fill)
				if err != nil || got != key {
					t.Errorf("%s is %q, %v", key, got, err)
				}
			})
		}
		all.Wait()
	},
}
