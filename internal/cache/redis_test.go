package cache

import (
	"context"
	"net"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/outbound"
)

// patience is for tests of what works, on however slow a machine.
const patience = 10 * time.Second

// openRedis uses a Redis and returns when it is known whether it is there.
func openRedis(t testing.TB, url string) *Redis {
	t.Helper()
	return openWithin(t, url, patience)
}

func openWithin(t testing.TB, url string, timeout time.Duration) *Redis {
	t.Helper()
	return openConfig(t, RedisConfig{URL: url, Service: "test", Timeout: timeout, Metrics: prometheus.NewRegistry()})
}

func openConfig(t testing.TB, cfg RedisConfig) *Redis {
	t.Helper()
	r, err := OpenRedis(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		r.Run(ctx)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
		if err := r.Close(); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "a probe", r.Probed)
	return r
}

// eventually waits until something is so.
func eventually(t testing.TB, what string, so func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	end := time.After(20 * time.Second)
	for !so() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("waited in vain for %s", what)
		}
	}
}

// realRedis starts a Redis and gives its URL.
func realRedis(t testing.TB) string { return devtest.Redis(t).URL }

// awayRedis is a Redis that nobody ever answered for.
func awayRedis(t testing.TB) *Redis {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	return openRedis(t, "redis://"+addr+"/0")
}

type mini struct{ *miniredis.Miniredis }

func startMini(t testing.TB) mini {
	t.Helper()
	return mini{miniredis.RunT(t)}
}

func (m mini) url() string { return "redis://" + m.Addr() + "/0" }

func (m mini) open(t testing.TB) *Redis {
	t.Helper()
	r := openRedis(t, m.url())
	if !r.Up() {
		t.Fatal("miniredis is not used")
	}
	return r
}

func TestARedisURLIsReadOrRefusedWithoutShowingIt(t *testing.T) {
	for _, tc := range []struct {
		url   string
		taken bool
	}{
		{"redis://localhost", true},
		{"redis://user:secret@localhost:6379/3", true},
		{"rediss://:secret@redis.example:6380/0", true},
		{"redis://user:secret@a:1?addr=b:2&addr=c:3", true},
		{"redis://user:secret@a:1?addr=b:2&master_name=main", true},
		{"", false},
		{"localhost:6379", false},
		{"http://user:secret@localhost", false},
		{"redis://user:secret@", false},
		{"redis://user:secret@local host", false},
		{"redis://user:se cret%zz@localhost", false},
		{"redis://user:secret@localhost/three", false},
		{"redis://user:secret@localhost?max_retries=7", false},
	} {
		t.Run(tc.url, func(t *testing.T) {
			err := CheckURL(tc.url, outbound.Options{})
			if (err == nil) != tc.taken {
				t.Errorf("got %v", err)
			}
			if err != nil && strings.Contains(err.Error(), "secret") {
				t.Errorf("the error shows the password: %v", err)
			}
			r, err := OpenRedis(RedisConfig{URL: tc.url, Service: "test", Timeout: 1, Metrics: prometheus.NewRegistry()})
			if (err == nil) != tc.taken {
				t.Errorf("opening: %v", err)
			}
			if r != nil {
				_ = r.Close()
			}
		})
	}
}

// as gives a Redis URL with another login.
func as(t testing.TB, raw, user, password string) string {
	t.Helper()
	u, err := url.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword(user, password)
	return u.String()
}

func TestARedisThatRelapsesIsLeftAloneForLonger(t *testing.T) {
	r, err := OpenRedis(RedisConfig{URL: "redis://unused.invalid", Service: "test", Timeout: 1, Metrics: prometheus.NewRegistry()})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	for relapses, want := range map[int32]time.Duration{0: time.Second, 1: 2 * time.Second, 4: 16 * time.Second, 5: maxHold, 1000: maxHold} {
		r.relapses.Store(relapses)
		if got := r.pause(); got != want {
			t.Errorf("after %d relapses the pause is %s, want %s", relapses, got, want)
		}
	}
	r.up.Store(true)
	if got := r.pause(); got != probeEvery {
		t.Errorf("while it is used the pause is %s", got)
	}
}
