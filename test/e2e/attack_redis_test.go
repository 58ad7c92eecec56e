package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Who can write to Redis can make livehub read again. They cannot make it say
// anything, nor keep readers waiting for a reader that is not there.
func TestAttackAPoisonedRedisChangesNoAnswer(t *testing.T) {
	o, err := redis.ParseURL(gw.Redis.URL)
	if err != nil {
		t.Fatal(err)
	}
	db := redis.NewClient(o)
	defer func() { _ = db.Close() }()
	key := func(app string) string {
		ns, err := gw.APIServer.Client.CoreV1().Namespaces().Get(t.Context(), "app-"+app+"-cicd", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return "glidepath:1:livehub:{pipelineruns:" + string(ns.UID) + "}"
	}
	read := func(app string) string { return ok(t, get(t, "/v1/live?app="+app, as("reader"))).header.Get("ETag") }
	want, stranger := read("sky-marshall"), read("shop")
	if want == stranger {
		t.Fatal("the two apps have the same runs")
	}
	unreadable := func() float64 {
		return scrape(t, gw.Livehubs[0].Metrics)["glidepath_cache_unreadable_total"].GetMetric()[0].GetCounter().GetValue()
	}
	mine, other := key("sky-marshall"), key("shop")
	// When its reading began, and until when it is one: as long as it is asked for.
	stamp := func() string {
		now, err := db.Time(t.Context()).Result()
		if err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf("%016d9999999999999999", now.UnixMicro())
	}
	for name, value := range map[string]func() string{
		"another app's list": func() string { read("shop"); return db.Get(t.Context(), other).Val() },
		"its own list, made younger": func() string {
			if v := db.Get(t.Context(), mine).Val(); len(v) > 32 {
				return stamp() + v[32:]
			}
			return ""
		},
		"a list that nobody sealed": func() string { return stamp() + `{"items":[]}` },
		"nothing but its age":       stamp,
	} {
		t.Run(name, func(t *testing.T) {
			start := unreadable()
			eventually(t, "livehub came upon the value", func() bool {
				if v := value(); v != "" {
					if err := db.Set(t.Context(), mine, v, time.Minute).Err(); err != nil {
						t.Fatal(err)
					}
				}
				if got := read("sky-marshall"); got != want {
					t.Fatal("the answer is another one")
				}
				return unreadable() > start
			})
		})
	}
	holdLocks(t, db, mine, func() { read("sky-marshall") })
}

// holdLocks takes the lock of a key in ways that livehub never does. A read
// that finds it must go on within the life of livehub's own locks.
func holdLocks(t *testing.T, db *redis.Client, key string, read func()) {
	t.Helper()
	lock := key + ":fill"
	for name, take := range map[string]func(context.Context) error{
		"a lock that never ends":  func(ctx context.Context) error { return db.Set(ctx, lock, "mine", 0).Err() },
		"a lock for an hour":      func(ctx context.Context) error { return db.Set(ctx, lock, "mine", time.Hour).Err() },
		"a lock that is a list":   func(ctx context.Context) error { return db.LPush(ctx, lock, "mine").Err() },
		"a lock as long as usual": func(ctx context.Context) error { return db.Set(ctx, lock, "mine", 3*time.Second).Err() },
	} {
		t.Run(name, func(t *testing.T) {
			eventually(t, "livehub dealt with the lock", func() bool {
				if err := errors.Join(db.Del(t.Context(), key, lock).Err(), take(t.Context())); err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				read()
				if waited := time.Since(start); waited > 9*time.Second { // the call itself gives up after ten
					t.Fatalf("a reader waited %s", waited)
				}
				n, err := db.Exists(t.Context(), lock).Result()
				if err != nil {
					t.Fatal(err)
				}
				return n == 0 // else the answer came from livehub's own memory
			})
		})
	}
}
