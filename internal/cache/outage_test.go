package cache

import (
	"fmt"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/klauspost/compress/s2"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/devenv/devtest"
)

func pack(plain string) []byte { return s2.Encode(nil, []byte(plain)) }

// hang is how long a Redis may take in tests of one that hangs: far above what
// the rest of such a test takes on however slow a machine.
const hang = 4 * time.Second

// quickly runs f and wants it to take no longer than a breaker allows: Redis
// may cost one deadline in all, whatever is the matter with it.
func quickly(t *testing.T, f func()) {
	t.Helper()
	start := time.Now()
	f()
	if took := time.Since(start); took >= 2*hang {
		t.Errorf("took %s", took)
	}
}

func TestWithoutRedisReadsGoToTheSourceAtOnce(t *testing.T) {
	r := awayRedis(t)
	c := newCache(t, r)
	quickly(t, func() {
		for i := range 20 {
			expect(t, c, fmt.Sprint(i), time.Hour, &source{value: "v"}, "v")
		}
	})
	if r.Up() || testutil.ToFloat64(r.gauge) != 0 {
		t.Error("a Redis that is away counts as used")
	}
}

func TestARedisThatComesBackIsUsedAgain(t *testing.T) {
	real := devtest.Redis(t)
	r, other := openRedis(t, real.URL), openRedis(t, real.URL)
	a, b := newCache(t, r), newCache(t, other)
	shares := func(key string) bool {
		s := &source{value: "v"}
		expect(t, a, key, time.Hour, s, "v")
		// The value is put into Redis after the call has been answered.
		for range 100 {
			expect(t, b, key, 0, &source{value: "v"}, "v") // never kept here
			if s.reads.Load() == 1 && testutil.ToFloat64(r.gauge) == 1 {
				return true
			}
		}
		return false
	}
	if !shares("before") {
		t.Fatal("nothing is shared before")
	}

	real.Process.Kill()
	quickly(t, func() {
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() { expect(t, a, fmt.Sprint("away", i), time.Hour, &source{value: "v"}, "v") })
		}
		all.Wait()
	})
	eventually(t, "the outage to be known", func() bool { return !r.Up() && testutil.ToFloat64(r.gauge) == 0 })
	if n := r.relapses.Load(); n != 1 {
		t.Errorf("one outage counts as %d", n)
	}
	// What was read before is still here, and nothing is read in the herd's
	// place when Redis comes back.
	s := &source{value: "v"}
	expect(t, a, "away3", time.Hour, s, "v")
	s.expectReads(t, 0)

	if err := real.Process.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Redis to be used again", func() bool { return r.Up() && other.Up() })
	if !shares("after") {
		t.Error("nothing is shared after")
	}
	expect(t, a, "away3", time.Hour, s, "v")
	s.expectReads(t, 0)
}

func TestARedisThatHangsCostsOneDeadline(t *testing.T) {
	real := devtest.Redis(t)
	r := openWithin(t, real.URL, hang)
	eventually(t, "Redis to be used", r.Up)
	c := newCache(t, r)
	expect(t, c, "before", time.Hour, &source{value: "v"}, "v")
	real.Process.Pause()
	quickly(t, func() {
		for i := range 20 {
			expect(t, c, fmt.Sprint(i), time.Hour, &source{value: "v"}, "v")
		}
	})
	if r.Up() {
		t.Error("a Redis that hangs counts as used")
	}
	real.Process.Resume()
	eventually(t, "Redis to be used again", r.Up)
}

func TestARedisThatDiesWhileAReaderHoldsTheLockCostsNoAnswer(t *testing.T) {
	real := devtest.Redis(t)
	a, b := newCache(t, openRedis(t, real.URL)), newCache(t, openRedis(t, real.URL))
	s := &source{value: "v", gate: make(chan struct{}), began: make(chan struct{}, 2)}
	waits := []func() []error{calls(t, 5, a, "k", s), calls(t, 5, b, "k", s)}
	<-s.began
	real.Process.Kill()
	<-s.began // the replica that waited reads for itself
	close(s.gate)
	for _, wait := range waits {
		for _, err := range wait() {
			if err != nil {
				t.Error(err)
			}
		}
	}
	s.expectReads(t, 2)
}

func TestARedisThatMayNotBeWrittenToIsNotUsed(t *testing.T) {
	for name, settings := range map[string][]string{
		"read only":          {"user reader on >secret ~* &* -@all +@read +eval +evalsha +time"},
		"without its keys":   {"user reader on >secret ~other:* &* +@all"},
		"with no room":       {"user reader on >secret ~* &* +@all", "maxmemory 1", "maxmemory-policy noeviction"},
		"with another login": {"user reader on >different ~* &* +@all"},
	} {
		t.Run(name, func(t *testing.T) {
			real := devtest.Redis(t, settings...)
			r := openRedis(t, as(t, real.URL, "reader", "secret"))
			if r.Up() {
				t.Error("it is used")
			}
			expect(t, newCache(t, r), "k", time.Hour, &source{value: "v"}, "v")
		})
	}
	// The smallest set of rights that is enough.
	real := devtest.Redis(t, "user cache on >secret ~glidepath:1:test:* -@all +evalsha +eval +time +getrange +strlen +get +set +del +pttl +pexpire")
	r := openRedis(t, as(t, real.URL, "cache", "secret"))
	if !r.Up() {
		t.Fatal("the rights in the documentation are not enough")
	}
	c := newCache(t, r)
	expect(t, c, "k", time.Hour, &source{value: "v"}, "v")
	eventually(t, "the lock to be given up", func() bool {
		f, err := r.acquire(t.Context(), valueKey, time.Hour, "")
		return err == nil && f.sealed != nil
	})
}

// cluster gives the URL of a cluster of one node, and a client that may do
// everything there.
func cluster(t *testing.T, settings ...string) (string, *redis.Client) {
	t.Helper()
	real := devtest.Redis(t, append(settings, "cluster-enabled yes")...)
	o, err := redis.ParseURL(real.URL)
	if err != nil {
		t.Fatal(err)
	}
	admin := redis.NewClient(o)
	t.Cleanup(func() { _ = admin.Close() })
	if err := admin.ClusterAddSlotsRange(t.Context(), 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the cluster to be one", func() bool {
		info, err := admin.ClusterInfo(t.Context()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
	return real.URL, admin
}

func TestAClusterIsARedisToo(t *testing.T) {
	real, admin := cluster(t, "user cache on >secret ~glidepath:1:test:* -@all +evalsha +eval +time +getrange +strlen +get +set +del +pttl +pexpire +cluster")
	// A second address makes it a cluster's; here it is the first one's.
	url := as(t, real, "cache", "secret") + "?addr=" + admin.Options().Addr
	s := &source{value: "v"}
	expect(t, newCache(t, openRedis(t, url)), "k", time.Hour, s, "v")
	stored(t, admin, valueKey)
	expect(t, newCache(t, openRedis(t, url)), "k", time.Hour, s, "v")
	s.expectReads(t, 1)
}

func TestAServerThatIsNoRedisIsNotUsed(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var serving sync.WaitGroup
	serving.Go(func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = conn.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = conn.Close()
		}
	})
	t.Cleanup(func() { _ = l.Close(); serving.Wait() })
	r := openRedis(t, "redis://"+l.Addr().String())
	if r.Up() {
		t.Error("it is used")
	}
	expect(t, newCache(t, r), "k", time.Hour, &source{value: "v"}, "v")
}
