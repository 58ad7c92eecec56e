package e2e_test

import (
	"net/http"
	"sync"
	"testing"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
)

// rule: R241, R290
func TestReplicasShareOneListAndGiveOneAnswer(t *testing.T) {
	many := devtest.Gateway(t, devenv.GatewayConfig{APIServer: gw.APIServer, Redis: gw.Redis, Edges: 2, Livehubs: 2})
	mark, err := gw.APIServer.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var mu sync.Mutex
	tags := map[string]int{}
	var wg sync.WaitGroup
	for i := range 40 {
		wg.Go(func() {
			edge := many.Edges[i%len(many.Edges)].URL
			_, a, err := try(t.Context(), http.MethodGet, edge+"/v1/apps/sky-marshall/live", as("reader"))
			if err != nil || a.status != http.StatusOK {
				t.Errorf("%d %v", a.status, err)
				return
			}
			mu.Lock()
			defer mu.Unlock()
			tags[a.header.Get("ETag")]++
		})
	}
	wg.Wait()
	if len(tags) != 1 {
		t.Errorf("an app where nothing changes has %d answers: %v", len(tags), tags)
	}
	events, err := gw.APIServer.Audit(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]int{}
	for _, e := range events {
		if e.Verb == "list" && e.Namespace == "app-sky-marshall-cicd" {
			lists[e.Resource]++
		}
	}
	for _, resource := range []string{"pipelineruns", "taskruns"} {
		if n := lists[resource]; n < 1 || n > 5 {
			t.Errorf("%d lists of %s for 40 viewers at two replicas", n, resource)
		}
	}
	for _, l := range many.Livehubs {
		m := scrape(t, l.Metrics)
		if len(m) == 0 {
			t.Errorf("%s has no metrics", l.Metrics)
		}
	}
}

func TestAGatewayStartsWithoutRedisAndTakesItUpWhenItComes(t *testing.T) {
	gw.Redis.Process.Kill()
	up := false
	defer func() {
		if !up {
			if err := gw.Redis.Process.Restart(cleanupContext(t)); err != nil {
				t.Error(err)
			}
		}
	}()
	late := devtest.Gateway(t, devenv.GatewayConfig{APIServer: gw.APIServer, Redis: gw.Redis})
	read := func() answer { return call(t, http.MethodGet, late.URL+"/v1/apps/shop/live", as("reader")) }
	ok(t, quickly(t, read))
	redisUp := func() float64 {
		return scrape(t, late.Livehubs[0].Metrics)["glidepath_cache_redis_up"].GetMetric()[0].GetGauge().GetValue()
	}
	if got := redisUp(); got != 0 {
		t.Errorf("the gauge says that Redis is there: %v", got)
	}
	if err := gw.Redis.Process.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	up = true
	eventually(t, "Redis is used", func() bool { ok(t, read()); return redisUp() == 1 })
}
