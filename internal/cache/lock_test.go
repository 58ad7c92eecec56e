package cache

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// Whoever can write to Redis can pretend without end that another replica is
// reading. That may cost a reader ShareTime and nothing else, not even time to
// read in.
func TestALockThatIsForgedAgainAndAgainDoesNotStopReading(t *testing.T) {
	url := realRedis(t)
	o, err := redis.ParseURL(url)
	if err != nil {
		t.Fatal(err)
	}
	client := redis.NewClient(o)
	defer client.Close()
	ctx, cancel := context.WithCancel(t.Context())
	forged := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for first := true; ctx.Err() == nil; first = false {
			if err := client.Set(ctx, lockOf(valueKey), "forged", time.Minute).Err(); err == nil && first {
				close(forged)
			}
		}
	}()
	<-forged
	s := &source{value: "v"}
	c := newCache(t, openRedis(t, url), func(cfg *Config[string]) {
		cfg.ShareTime, cfg.FillTime = 200*time.Millisecond, 200*time.Millisecond
	})
	expect(t, c, "k", time.Hour, s, "v")
	s.expectReads(t, 1)
	cancel()
	<-ended
}
