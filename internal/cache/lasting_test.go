package cache

import (
	"context"
	"fmt"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// lasting makes a Lasting of a source.
func lasting(s *source, life time.Duration) Lasting[string] {
	return func(ctx context.Context) (string, time.Duration, error) {
		value, err := s.fill(ctx)
		return value, life, err
	}
}

// expectLasting gets key and wants a value.
func expectLasting(t testing.TB, c *Cache[string], s *source, life time.Duration, want string) {
	t.Helper()
	got, err := c.GetLasting(t.Context(), "k", lasting(s, life))
	if err != nil || got != want {
		t.Errorf("got %q, %v, want %q", got, err, want)
	}
}

func TestAValueThatLastsIsKeptFromWhenItWasRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCache(t, nil, func(cfg *Config[string]) { cfg.FillTime = MaxFillTime })
		reads := 0
		get := func() string {
			t.Helper()
			v, err := c.GetLasting(t.Context(), "k", func(context.Context) (string, time.Duration, error) {
				reads++
				n := reads
				time.Sleep(65 * time.Second)
				return fmt.Sprint(n), time.Minute, nil
			})
			if err != nil {
				t.Error(err)
			}
			return v
		}
		get()
		time.Sleep(time.Minute - time.Second)
		if got := get(); got != "1" {
			t.Errorf("a second before its time is over: %q", got)
		}
		time.Sleep(2 * time.Second)
		if got := get(); got != "2" {
			t.Errorf("a second after its time is over: %q", got)
		}
	})
}

// The time that a read took does not shorten what other replicas have of it.
func TestAValueThatLastsIsSharedUntilItsEnd(t *testing.T) {
	const life, took = time.Hour, 100 * time.Millisecond
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		a := newCache(t, open())
		s := &source{value: "v", gate: make(chan struct{})}
		time.AfterFunc(took, func() { close(s.gate) })
		expectLasting(t, a, s, life, "v")
		raw := stored(t, client, valueKey)
		began, err1 := strconv.ParseInt(string(raw[:16]), 10, 64)
		until, err2 := strconv.ParseInt(string(raw[16:32]), 10, 64)
		if lasts := time.Duration(until-began) * time.Microsecond; err1 != nil || err2 != nil || lasts < life+took/2 {
			t.Errorf("from when its reading began it lasts %s, %v, %v", lasts, err1, err2)
		}
		expectLasting(t, newCache(t, open()), s, life, "v")
		s.expectReads(t, 1)
	})
}

func TestAValueThatLastsIsNoneAfterItsEndWhoeverKeepsIt(t *testing.T) {
	m := startMini(t) // which takes nothing away by itself
	now := time.Now()
	m.SetTime(now)
	expectLasting(t, newCache(t, m.open(t)), &source{value: "old"}, time.Minute, "old")
	eventually(t, "the value in Redis", func() bool { return m.Exists(valueKey) })
	m.SetTime(now.Add(time.Minute - time.Second))
	expectLasting(t, newCache(t, m.open(t)), &source{value: "new"}, time.Minute, "old")
	m.SetTime(now.Add(2 * time.Minute))
	expectLasting(t, newCache(t, m.open(t)), &source{value: "new"}, time.Minute, "new")
}

func TestOnlyWhetherAValueIsThereIsAskedForToPutOne(t *testing.T) {
	m := startMini(t)
	r := m.open(t)
	c := newCache(t, r)
	if err := c.Put(t.Context(), "k", time.Hour, "first"); err != nil {
		t.Error(err)
	}
	found, err := r.look(t.Context(), valueKey, anyAge, "", 0)
	if err != nil || found.large == 0 || found.sealed != nil {
		t.Errorf("found %+v, %v", found, err)
	}
	if err := c.Put(t.Context(), "k", time.Hour, "second"); err != nil {
		t.Error(err)
	}
	if err := c.Put(t.Context(), "odd", time.Hour, "cannot be encoded"); err == nil {
		t.Error("what cannot be shared counts as kept")
	}
	expectLasting(t, newCache(t, m.open(t)), &source{value: "read"}, time.Hour, "first")
}
