package livehub

import (
	"fmt"
	"testing"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
)

// redisState is something that befalls a Redis while it is used.
type redisState struct {
	start func(t *testing.T) (url string, nodes []*devenv.Redis)
	// harm does it; mend ends it where it would last.
	harm, mend func(t *testing.T, nodes []*devenv.Redis)
	// away is whether Redis is not used from then on, until it is mended.
	away bool
}

func oneRedis(settings ...string) func(*testing.T) (string, []*devenv.Redis) {
	return func(t *testing.T) (string, []*devenv.Redis) {
		t.Helper()
		r := devtest.Redis(t, settings...)
		return r.URL, []*devenv.Redis{r}
	}
}

func do(command ...any) func(*testing.T, []*devenv.Redis) {
	return func(t *testing.T, nodes []*devenv.Redis) {
		t.Helper()
		if _, err := nodes[0].Do(t.Context(), command...); err != nil {
			t.Fatal(err)
		}
	}
}

// fill has a Redis that may evict hold others' values in place of ours.
func fill(t *testing.T, nodes []*devenv.Redis) {
	t.Helper()
	do("config", "set", "maxmemory", "8mb")(t, nodes)
	do("eval", "for i = 1, 40000 do redis.call('SET', 'other:' .. i, string.rep('x', 400)) end return 1", 0)(t, nodes)
}

func kill(_ *testing.T, nodes []*devenv.Redis) { nodes[0].Process.Kill() }

func restart(t *testing.T, nodes []*devenv.Redis) {
	t.Helper()
	if err := nodes[0].Process.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func nothing(*testing.T, []*devenv.Redis) {}

var redisStates = map[string]redisState{
	"well":   {oneRedis(), nothing, nothing, false},
	"away":   {oneRedis(), kill, restart, true},
	"silent": {oneRedis(), func(_ *testing.T, nodes []*devenv.Redis) { nodes[0].Process.Pause() }, func(_ *testing.T, nodes []*devenv.Redis) { nodes[0].Process.Resume() }, true},
	"full, and may not evict": {
		oneRedis("maxmemory-policy noeviction"), do("config", "set", "maxmemory", "1"), do("config", "set", "maxmemory", "0"), true,
	},
	"full, and evicts": {oneRedis("maxmemory-policy allkeys-lru"), fill, nothing, false},
	"flushed":          {oneRedis(), do("flushall"), nothing, false},
	"failed over by a Sentinel": {
		func(t *testing.T) (string, []*devenv.Redis) {
			t.Helper()
			g := devtest.Sentinels(t)
			return g.URL, g.Nodes
		}, kill, nothing, false,
	},
	"a Cluster of three nodes":    {clusterOfThree, nothing, nothing, false},
	"a Cluster that loses a node": {clusterOfThree, kill, restart, true},
}

func clusterOfThree(t *testing.T) (string, []*devenv.Redis) {
	t.Helper()
	g := devtest.RedisCluster(t)
	return g.URL, g.Nodes
}

// Whatever Redis does: who watches sees every change, and who comes back to a
// replica that did not follow is sent each change that it missed, once.
func whateverRedisDoes(t *testing.T, g *stage) {
	turn := 0
	for name, state := range redisStates {
		turn++
		prefix := fmt.Sprint("redis", turn)
		t.Run(name, func(t *testing.T) {
			url, nodes := state.start(t)
			here, there := g.open(t, url), g.open(t, url)
			eventually(t, "Redis to be used", func() bool { return here.redis.Up() && there.redis.Up() })
			stays, leaves := here.watch(t, g, nil), here.watch(t, g, nil)
			g.touch(t, 20, prefix)
			leaves.sees(t, g)
			state.harm(t, nodes)
			t.Cleanup(func() { nodes[0].Process.Resume() }) // or it could not be stopped
			g.touch(t, 20, prefix+"-after")
			leaves.sees(t, g)
			leaves.leave()
			if state.away {
				eventually(t, "Redis not to be used", func() bool { return !here.redis.Up() && !there.redis.Up() })
			} else {
				eventually(t, "Redis to be used", func() bool { return here.redis.Up() && there.redis.Up() })
			}
			g.touch(t, 20, prefix+"-missed")
			g.remove(t, prefix+"-missed-7")
			stays.sees(t, g)
			again := there.watch(t, g, leaves)
			again.sees(t, g)

			state.mend(t, nodes)
			eventually(t, "Redis to be used", func() bool { return here.redis.Up() && there.redis.Up() })
			before := here.journalled(t)
			g.touch(t, 10, prefix+"-later")
			for _, w := range []*watcher{stays, again} {
				w.sees(t, g)
				w.knows(t, 70)
			}
			eventually(t, "what happens to be shared again", func() bool { return here.journalled(t) >= before+10 })
		})
	}
}

// journalled is how many changes a replica has shared.
func (h house) journalled(t *testing.T) float64 {
	t.Helper()
	families, err := h.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "glidepath_cache_journal_entries_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetValue() == "appended" {
					return m.GetCounter().GetValue()
				}
			}
		}
	}
	return 0
}
