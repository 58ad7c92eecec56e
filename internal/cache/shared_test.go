package cache

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2/server"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/seal"
)

const valueKey = "glidepath:1:test:{k}"

// everyRedis runs a test with miniredis and with a real Redis. client is for
// tests to look into it.
func everyRedis(t *testing.T, check func(t *testing.T, open func() *Redis, client *redis.Client)) {
	for name, start := range map[string]func(*testing.T) string{
		"miniredis": func(t *testing.T) string { return startMini(t).url() },
		"redis":     func(t *testing.T) string { return realRedis(t) },
	} {
		t.Run(name, func(t *testing.T) {
			url := start(t)
			client := clientOf(t, url)
			check(t, func() *Redis { return openRedis(t, url) }, client)
		})
	}
}

// clientOf gives a client for tests to look into a Redis.
func clientOf(t *testing.T, url string) *redis.Client {
	t.Helper()
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(o)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// stored waits until a value is in Redis and gives it.
func stored(t *testing.T, client *redis.Client, key string) []byte {
	t.Helper()
	var raw []byte
	eventually(t, "a value in Redis", func() bool {
		var err error
		raw, err = client.Get(t.Context(), key).Bytes()
		return err == nil
	})
	return raw
}

// rule: R241
func TestAHerdOverTwoReplicasCostsOneRead(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		a, b := newCache(t, open()), newCache(t, open())
		s := &source{value: "v", gate: make(chan struct{}), began: make(chan struct{}, 2)}
		waits := []func() []error{calls(t, 25, a, "k", s), calls(t, 25, b, "k", s)}
		<-s.began
		// Both replicas have come to Redis: one reads, the other looks.
		eventually(t, "the other replica to look", func() bool { return looks(t, client) >= 4 })
		close(s.gate)
		for _, wait := range waits {
			for _, err := range wait() {
				if err != nil {
					t.Error(err)
				}
			}
		}
		s.expectReads(t, 1)
		shared := testutil.ToFloat64(a.metrics.calls.WithLabelValues(string(resultShared))) +
			testutil.ToFloat64(b.metrics.calls.WithLabelValues(string(resultShared)))
		if shared != 25 {
			t.Errorf("%v calls got what the other replica read, want 25", shared)
		}
		if n, err := client.Exists(t.Context(), lockOf(valueKey)).Result(); err != nil || n != 0 {
			t.Errorf("the lock is left: %d, %v", n, err)
		}
	})
}

// looks counts the scripts that were run, which miniredis does not tell: there
// it is enough that both replicas had the time for it.
func looks(t *testing.T, client *redis.Client) int {
	t.Helper()
	info, err := client.Info(t.Context(), "commandstats").Result()
	if err != nil || !strings.Contains(info, "cmdstat_evalsha") {
		return 4
	}
	_, after, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
	var n int
	if _, err := fmt.Sscanf(after, "%d", &n); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestAReplicaTakesWhatAnotherRead(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		s := &source{value: "v"}
		expect(t, newCache(t, open()), "k", time.Hour, s, "v")
		stored(t, client, valueKey)
		expect(t, newCache(t, open()), "k", time.Hour, s, "v")
		s.expectReads(t, 1)
		expect(t, newCache(t, open()), "k", 0, &source{value: "younger"}, "younger")
	})
}

func TestAValueIsNoYoungerForHavingBeenShared(t *testing.T) {
	m := startMini(t)
	now := time.Now()
	m.SetTime(now)
	expect(t, newCache(t, m.open(t)), "k", 2*time.Hour, &source{value: "old"}, "old")
	eventually(t, "the value in Redis", func() bool { return m.Exists(valueKey) })
	m.SetTime(now.Add(time.Hour))
	c := newCache(t, m.open(t))
	expect(t, c, "k", 2*time.Hour, &source{value: "new"}, "old")
	expect(t, c, "k", 30*time.Minute, &source{value: "new"}, "new")
}

// TestWhoWaitsForALongReadGetsIt: a read that takes longer than its value may
// be old is still one that began recently enough for those who waited for it.
func TestWhoWaitsForALongReadGetsIt(t *testing.T) {
	const age = 2 * time.Second
	url := realRedis(t)
	a, b := newCache(t, openRedis(t, url)), newCache(t, openRedis(t, url))
	s := &source{value: "v", gate: make(chan struct{}), began: make(chan struct{}, 1)}
	var both sync.WaitGroup
	both.Go(func() { expect(t, a, "k", age, s, "v") })
	<-s.began
	both.Go(func() { expect(t, b, "k", age, s, "v") })
	<-time.After(age + age/4)
	close(s.gate)
	both.Wait()
	s.expectReads(t, 1)
}

func TestAValueStaysAsLongAsItMayBeUsed(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		expect(t, newCache(t, open()), "k", 2*time.Second, &source{value: "v"}, "v")
		stored(t, client, valueKey)
		if left, err := client.PTTL(t.Context(), valueKey).Result(); err != nil || left <= 0 || left > 2*time.Second {
			t.Errorf("it stays for %s, %v, want 2 s at most", left, err)
		}
	})
}

func TestNothingIsKeptInTheClear(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		expect(t, newCache(t, open()), "k", time.Hour, &source{value: "a secret run"}, "a secret run")
		if raw := stored(t, client, valueKey); bytes.Contains(raw, []byte("secret")) {
			t.Errorf("Redis holds %q", raw)
		}
	})
}

// TestWhatDoesNotOpenCountsAsAbsent: whoever can write to Redis can not make a
// replica say something.
func TestWhatDoesNotOpenCountsAsAbsent(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		expect(t, newCache(t, open()), "k", time.Hour, &source{value: "true"}, "true")
		expect(t, newCache(t, open()), "other", time.Hour, &source{value: "of another key"}, "of another key")
		genuine, other := stored(t, client, valueKey), stored(t, client, "glidepath:1:test:{other}")
		stamp := func(d time.Duration) string { return fmt.Sprintf("%016d%s", time.Now().Add(d).UnixMicro(), noEnd) }
		changed := bytes.Clone(genuine)
		changed[len(changed)-1] ^= 1
		ctx := t.Context()
		set := func(v any) func() error { return func() error { return client.Set(ctx, valueKey, v, 0).Err() } }
		for name, put := range map[string]func() error{
			"garbage":                              set("garbage"),
			"an empty string":                      set(""),
			"garbage behind a stamp":               set(stamp(-time.Second) + "garbage"),
			"a stamp alone":                        set(stamp(-time.Second)),
			"a stamp that is no number":            set("nan_____________" + noEnd + "garbage"),
			"a stamp of later":                     set(stamp(time.Hour) + string(genuine[stampSize:])),
			"a true value with one bit changed":    set(changed),
			"a true value without its end":         set(genuine[:len(genuine)-1]),
			"a true value with a younger stamp":    set(stamp(0) + string(genuine[stampSize:])),
			"a true value of another key":          set(other),
			"a value sealed with another key":      set(forge(t, testKeys(t, 'x'), "cache test", stamp(0), "text:forged")),
			"a value sealed for another purpose":   set(forge(t, testKeys(t, 'k'), "cache other", stamp(0), "text:forged")),
			"a value sealed by us and of later":    set(forge(t, testKeys(t, 'k'), "cache test", stamp(time.Hour), "text:of later")),
			"a value sealed by us of another form": set(forge(t, testKeys(t, 'k'), "cache test", stamp(0), "other:form")),
			"a value sealed by us and not packed":  set(forgeRaw(t, testKeys(t, 'k'), "cache test", stamp(0), []byte("\xff\xff\xff\xff\xff"))),
			"a list":                               func() error { return client.RPush(ctx, valueKey, "x").Err() },
			"a hash":                               func() error { return client.HSet(ctx, valueKey, "x", "y").Err() },
		} {
			t.Run(name, func(t *testing.T) {
				if err := errors.Join(client.FlushAll(ctx).Err(), put()); err != nil {
					t.Fatal(err)
				}
				s := &source{value: "read again"}
				expect(t, newCache(t, open()), "k", time.Hour, s, "read again")
				s.expectReads(t, 1)
				// And what was read takes its place.
				eventually(t, "the value in Redis", func() bool {
					v, err := newCache(t, open()).Get(ctx, "k", time.Hour, s.fill)
					return err == nil && v == "read again" && s.reads.Load() == 1
				})
			})
		}
	})
}

func forge(t *testing.T, k seal.Keys, purpose, stamp, plain string) []byte {
	t.Helper()
	return forgeRaw(t, k, purpose, stamp, pack(plain))
}

func forgeRaw(t *testing.T, k seal.Keys, purpose, stamp string, packed []byte) []byte {
	t.Helper()
	s, err := seal.New(k, purpose)
	if err != nil {
		t.Fatal(err)
	}
	return s.Seal([]byte(stamp), packed, valueKey+"\x00"+stamp)
}

func TestALockThatIsLeftOverDoesNotStopReading(t *testing.T) {
	ctx := context.Background()
	for name, leave := range map[string]func(*redis.Client) error{
		"of a holder that died": func(c *redis.Client) error {
			return c.Set(ctx, lockOf(valueKey), "dead", 50*time.Millisecond).Err()
		},
		"without an end":                    func(c *redis.Client) error { return c.Set(ctx, lockOf(valueKey), "for ever", 0).Err() },
		"with an end that no replica gives": func(c *redis.Client) error { return c.Set(ctx, lockOf(valueKey), "long", time.Hour).Err() },
		"that is a list":                    func(c *redis.Client) error { return c.RPush(ctx, lockOf(valueKey), "x").Err() },
		"that is a list and ends by and by": func(c *redis.Client) error {
			return errors.Join(c.RPush(ctx, lockOf(valueKey), "x").Err(), c.PExpire(ctx, lockOf(valueKey), 50*time.Millisecond).Err())
		},
		"of nobody, while a value is there": func(c *redis.Client) error { return c.Set(ctx, lockOf(valueKey), "x", 0).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			url := realRedis(t)
			o, err := redis.ParseURL(url)
			if err != nil {
				t.Fatal(err)
			}
			client := redis.NewClient(o)
			defer client.Close()
			if err := leave(client); err != nil {
				t.Fatal(err)
			}
			s := &source{value: "v"}
			expect(t, newCache(t, openRedis(t, url)), "k", time.Hour, s, "v")
			s.expectReads(t, 1)
			stored(t, client, valueKey)
		})
	}
}

func TestAReaderThatWasOvertakenDoesNotReplaceAYoungerValue(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		ctx := t.Context()
		slow, quick := open(), open()
		sealed := []byte("not looked into here")
		first, err := slow.acquire(ctx, valueKey, time.Hour, "")
		if err != nil || first.lock == "" {
			t.Fatalf("got %+v, %v", first, err)
		}
		if again, err := quick.acquire(ctx, valueKey, time.Hour, ""); err != nil || again.lock != "" || again.sealed != nil {
			t.Fatalf("a second reader got %+v, %v", again, err)
		}
		// The first reader's lock is lost, as if it had been away for long.
		if err := client.Del(ctx, lockOf(valueKey)).Err(); err != nil {
			t.Fatal(err)
		}
		second, err := quick.acquire(ctx, valueKey, time.Hour, "")
		if err != nil || second.lock == "" {
			t.Fatalf("got %+v, %v", second, err)
		}
		for what, do := range map[string]func(){
			"stores":   func() { _ = slow.store(ctx, valueKey, first.lock, first.stamp+noEnd, sealed, time.Hour) },
			"releases": func() { slow.release(ctx, valueKey, first.lock) },
		} {
			do()
			if holder, err := client.Get(ctx, lockOf(valueKey)).Result(); err != nil || holder != second.lock {
				t.Fatalf("the overtaken reader %s: the lock is held by %q, %v", what, holder, err)
			}
			if n, err := client.Exists(ctx, valueKey).Result(); err != nil || n != 0 {
				t.Fatalf("the overtaken reader %s: a value is there, %v", what, err)
			}
		}
		if err := quick.store(ctx, valueKey, second.lock, second.stamp+noEnd, []byte("younger"), time.Hour); err != nil {
			t.Error(err)
		}
		_ = slow.store(ctx, valueKey, first.lock, first.stamp+noEnd, sealed, time.Hour) // now that no lock is held
		if raw := stored(t, client, valueKey); !bytes.HasSuffix(raw, []byte("younger")) {
			t.Errorf("Redis holds %q", raw)
		}
	})
}

func TestALockIsKeptWhileItsHolderReads(t *testing.T) {
	m := startMini(t)
	r := m.open(t)
	found, err := r.acquire(t.Context(), valueKey, time.Hour, "")
	if err != nil {
		t.Fatal(err)
	}
	stop := r.keep(t.Context(), valueKey, found.lock)
	m.FastForward(lockLife - time.Millisecond)
	eventually(t, "the lock's life to begin anew", func() bool { return m.TTL(lockOf(valueKey)) > lockLife/2 })
	stop()
	m.FastForward(lockLife)
	if m.Exists(lockOf(valueKey)) {
		t.Error("a lock outlives its holder for longer than it should")
	}
}

func TestALockIsGivenUpWhenNothingCameOfIt(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		c := newCache(t, open())
		broken := errors.New("broken")
		if _, err := c.Get(t.Context(), "k", time.Hour, (&source{err: broken}).fill); !errors.Is(err, broken) {
			t.Errorf("got %v", err)
		}
		unshared := "cannot be encoded"
		free := func() bool {
			n, err := client.Exists(t.Context(), lockOf(valueKey)).Result()
			return err == nil && n == 0
		}
		// In miniredis no lock ends by itself.
		eventually(t, "the lock of a failed reader to be given up", free)
		expect(t, c, "k", time.Hour, &source{value: unshared}, unshared)
		eventually(t, "the lock of a reader that cannot share to be given up", free)
	})
}

func TestAValueLargerThanAnyOfOursIsNotFetched(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		r := open()
		began, err := r.acquire(t.Context(), valueKey, time.Hour, "")
		if err != nil {
			t.Fatal(err)
		}
		if err := r.store(t.Context(), valueKey, began.lock, began.stamp+noEnd, []byte("sealed"), time.Hour); err != nil {
			t.Error(err)
		}
		if f, err := r.acquire(t.Context(), valueKey, time.Hour, ""); err != nil || string(f.sealed) != "sealed" {
			t.Fatalf("got %+v, %v", f, err)
		}
		if err := client.SetRange(t.Context(), valueKey, int64(stampSize+maxSealed), "x").Err(); err != nil {
			t.Fatal(err)
		}
		f, err := r.acquire(t.Context(), valueKey, time.Hour, "")
		if err != nil || f.lock == "" {
			t.Errorf("got %d bytes and the lock %q, %v", len(f.sealed), f.lock, err)
		}
	})
}

func TestALargeValueIsSharedToo(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		large := strings.Repeat("large", maxAtOnce)
		as := func(cfg *Config[string]) { cfg.LocalBytes, cfg.Compressed = 1, true }
		s := &source{value: large}
		expectLarge := func(c *Cache[string]) {
			if got, err := c.Get(t.Context(), "k", time.Hour, s.fill); err != nil || got != large {
				t.Errorf("got %d bytes, %v", len(got), err)
			}
		}
		expectLarge(newCache(t, open(), as))
		raw := stored(t, client, valueKey)
		expectLarge(newCache(t, open(), as))
		s.expectReads(t, 1)

		// Gone, or another, between the reply that it is there and the next.
		r := open()
		found := found{large: len(raw), stamp: string(raw[:stampSize])}
		if sealed, err := r.fetch(t.Context(), valueKey, found); err != nil || len(sealed) != len(raw)-stampSize {
			t.Errorf("got %d bytes, %v", len(sealed), err)
		}
		found.stamp = "0000000000000000"
		if sealed, err := r.fetch(t.Context(), valueKey, found); err != nil || sealed != nil {
			t.Errorf("another value: got %d bytes, %v", len(sealed), err)
		}
		if sealed, err := r.fetch(t.Context(), "glidepath:1:test:{gone}", found); err != nil || sealed != nil {
			t.Errorf("no value: got %d bytes, %v", len(sealed), err)
		}
	})
}

// TestAServerThatLiesIsNotBelieved: a call ends soon, whatever a server that
// passes for Redis says.
func TestAServerThatLiesIsNotBelieved(t *testing.T) {
	for name, tc := range map[string]struct {
		age   int64 // of the value that it always has, in µs
		found bool
	}{
		"about a value from later":           {-1, false},
		"about a value that is too old":      {1 + time.Hour.Microseconds(), false},
		"about a value of an impossible age": {1 << 62, false},
		"about a value that does not open":   {0, true},
	} {
		t.Run(name, func(t *testing.T) {
			m := startMini(t)
			r := m.open(t)
			m.Server().SetPreHook(func(p *server.Peer, cmd string, _ ...string) bool {
				if cmd != "EVALSHA" {
					return false
				}
				p.WriteLen(4)
				p.WriteBulk("value")
				p.WriteBulk("0000000000000000")
				p.WriteRaw(fmt.Sprintf(":%d\r\n", tc.age))
				p.WriteBulk("sealed")
				return true
			})
			if f, err := r.acquire(t.Context(), valueKey, time.Hour, ""); (err == nil) != tc.found {
				t.Errorf("found %+v, %v", f, err)
			}
			start := time.Now()
			expect(t, newCache(t, r), "k", time.Hour, &source{value: "v"}, "v")
			if took := time.Since(start); took > patience/2 {
				t.Errorf("the call took %s", took)
			}
			m.Server().SetPreHook(nil) // the probe is not what is tested
		})
	}
}

func TestARunOfUnreadableRepliesIsAnError(t *testing.T) {
	for _, reply := range []any{
		nil, "value",
		[]any{},
		[]any{"value", "stamp", "age", "sealed"},
		[]any{1, 2, 3, 4},
		[]any{"large", "stamp", int64(1), "many"},
		[]any{"large", "stamp", int64(1), "-1"},
		[]any{"large", "stamp", int64(1), "1000000000"},
	} {
		if found, err := parseFound(reply, "held"); err == nil {
			t.Errorf("%v is read as %+v", reply, found)
		}
	}
}
