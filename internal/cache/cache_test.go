package cache

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/seal"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler))
	goleak.VerifyTestMain(m)
}

// text keeps strings, and knows its own form.
type text struct{}

func (text) Encode(s string) ([]byte, error) {
	if s == "cannot be encoded" {
		return nil, errors.New(s)
	}
	return []byte("text:" + s), nil
}

func (text) Decode(b []byte) (string, error) {
	s, ok := strings.CutPrefix(string(b), "text:")
	if !ok {
		return "", errors.New("not a text")
	}
	return s, nil
}

func (text) Size(s string) int { return len(s) }

func testKeys(t testing.TB, b byte) seal.Keys {
	t.Helper()
	k, err := seal.NewKeys([]byte(strings.Repeat(string(rune(b)), seal.KeySize)))
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// newCache gives a cache on r, which may be nil.
func newCache(t testing.TB, r *Redis, change ...func(*Config[string])) *Cache[string] {
	t.Helper()
	cfg := Config[string]{
		Name: "test", Codec: text{}, Seal: testKeys(t, 'k'), LocalBytes: 1 << 20, FillTime: 20 * time.Second, ShareTime: 20 * time.Second,
		Flights: 100, Metrics: prometheus.NewRegistry(), Redis: r,
	}
	for _, c := range change {
		c(&cfg)
	}
	c, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// source counts its reads. A read waits for gate, if there is one.
type source struct {
	reads atomic.Int32
	gate  chan struct{}
	began chan struct{} // gets a value when a read begins, if it has room
	value string
	err   error
}

func (s *source) fill(ctx context.Context) (string, error) {
	s.reads.Add(1)
	select {
	case s.began <- struct{}{}:
	default:
	}
	if s.gate != nil {
		select {
		case <-s.gate:
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
	return s.value, s.err
}

func (s *source) expectReads(t testing.TB, want int32) {
	t.Helper()
	if got := s.reads.Load(); got != want {
		t.Errorf("the source was read %d times, want %d", got, want)
	}
}

// expect gets key and wants a value.
func expect(t testing.TB, c *Cache[string], key string, maxAge time.Duration, s *source, want string) {
	t.Helper()
	got, err := c.Get(t.Context(), key, maxAge, s.fill)
	if err != nil || got != want {
		t.Errorf("%s is %q, %v, want %q", key, got, err, want)
	}
}

// calls starts n calls of Get at once. The returned function waits for them.
func calls(t testing.TB, n int, c *Cache[string], key string, s *source) (wait func() []error) {
	t.Helper()
	var all sync.WaitGroup
	errs := make([]error, n)
	for i := range n {
		all.Go(func() {
			var got string
			if got, errs[i] = c.Get(t.Context(), key, time.Hour, s.fill); errs[i] == nil && got != s.value {
				t.Errorf("got %q, want %q", got, s.value)
			}
		})
	}
	return func() []error { all.Wait(); return errs }
}

func TestACacheNeedsItsBounds(t *testing.T) {
	for name, change := range map[string]func(*Config[string]){
		"no name":            func(c *Config[string]) { c.Name = "" },
		"no codec":           func(c *Config[string]) { c.Codec = nil },
		"no metrics":         func(c *Config[string]) { c.Metrics = nil },
		"no bytes":           func(c *Config[string]) { c.LocalBytes = 0 },
		"no flights":         func(c *Config[string]) { c.Flights = 0 },
		"no time":            func(c *Config[string]) { c.FillTime = 0 },
		"too much time":      func(c *Config[string]) { c.FillTime = MaxFillTime + 1 },
		"no time to share":   func(c *Config[string]) { c.ShareTime = 0 },
		"more than to read":  func(c *Config[string]) { c.ShareTime = 2 },
		"no key":             func(c *Config[string]) { c.Seal = seal.Keys{} },
		"metrics used twice": nil,
	} {
		t.Run(name, func(t *testing.T) {
			reg := prometheus.NewRegistry()
			cfg := Config[string]{Name: "test", Codec: text{}, Seal: testKeys(t, 'k'), LocalBytes: 1, FillTime: 1, ShareTime: 1, Flights: 1, Metrics: reg}
			if change == nil {
				if _, err := newMetrics(reg, "test"); err != nil {
					t.Fatal(err)
				}
			} else {
				change(&cfg)
			}
			if c, err := New(cfg); err == nil {
				c.Close()
				t.Error("it is made")
			}
		})
	}
}
