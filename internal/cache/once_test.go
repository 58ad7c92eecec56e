package cache

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"hangar.io/glidepath/internal/devenv/devtest"
)

func TestAnIDIsFirstOnceInAllReplicas(t *testing.T) {
	everyRedis(t, func(t *testing.T, open func() *Redis, client *redis.Client) {
		one, two := open(), open()
		eventually(t, "Redis to be used", func() bool { return one.Up() && two.Up() })
		replicas := []*Once{NewOnce(one, "test"), NewOnce(two, "test")}
		end := time.Now().Add(time.Minute)
		var firsts atomic.Int32
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				ok, err := replicas[i%2].First(t.Context(), "a", end)
				if err != nil {
					t.Error(err)
				}
				if ok {
					firsts.Add(1)
				}
			})
		}
		all.Wait()
		if n := firsts.Load(); n != 1 {
			t.Errorf("%d were first", n)
		}
		for id, o := range map[string]*Once{"b": replicas[0], "a": NewOnce(one, "other")} {
			if ok, err := o.First(t.Context(), id, end); !ok || err != nil {
				t.Errorf("%s: %v %v", id, ok, err)
			}
		}
		keys, err := client.Keys(t.Context(), "glidepath:1:test:{used:*").Result()
		if err != nil || len(keys) != 2 {
			t.Fatalf("%q %v", keys, err)
		}
		for _, key := range keys {
			if left := client.PTTL(t.Context(), key).Val(); left <= 0 || left > time.Minute {
				t.Errorf("%s stays for %s", key, left)
			}
		}
		// Whatever else is under the key, the id counts as used.
		if err := client.Del(t.Context(), keys[0]).Err(); err != nil {
			t.Fatal(err)
		}
		if err := client.LPush(t.Context(), keys[0], "x").Err(); err != nil {
			t.Fatal(err)
		}
		for _, id := range []string{"a", "b"} {
			if ok, err := replicas[0].First(t.Context(), id, end); ok || err != nil {
				t.Errorf("%s over something else: %v %v", id, ok, err)
			}
		}
	})
}

func TestWithoutRedisNobodyCanTellWhatWasUsed(t *testing.T) {
	if ok, err := NewOnce(awayRedis(t), "test").First(t.Context(), "a", time.Now().Add(time.Minute)); ok || err == nil {
		t.Errorf("%v %v", ok, err)
	}
	real := devtest.Redis(t)
	r := openRedis(t, real.URL)
	eventually(t, "Redis to be used", r.Up)
	o := NewOnce(r, "test")
	if ok, err := o.First(t.Context(), "a", time.Now().Add(time.Minute)); !ok || err != nil {
		t.Fatalf("%v %v", ok, err)
	}
	real.Process.Kill()
	if ok, err := o.First(t.Context(), "a", time.Now().Add(time.Minute)); ok || err == nil {
		t.Errorf("%v %v", ok, err)
	}
}
