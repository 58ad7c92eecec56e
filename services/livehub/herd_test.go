package livehub

import (
	"fmt"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"

	"hangar.io/glidepath/internal/devenv/devtest"
)

// gate holds up what waits for open. A test that fails at a wait leaves nobody
// behind it: the cluster and the replicas could not end.
type gate struct {
	open    chan struct{}
	release func()
}

func newGate(t *testing.T) gate {
	g := gate{open: make(chan struct{})}
	g.release = sync.OnceFunc(func() { close(g.open) })
	t.Cleanup(g.release)
	return g
}

// herd has callers of both replicas ask at once, and lets the cluster answer
// once asked has come true.
func herd(t *testing.T, c *cluster, replicas []*replica, callers int, asked func() bool) {
	t.Helper()
	gate := newGate(t)
	c.fail(func(w http.ResponseWriter, r *http.Request) {
		_, resource, namespace := c.check(r)
		<-gate.open
		c.page(w, r.URL.Query(), resource, namespace)
	})
	var all sync.WaitGroup
	for i := range callers {
		all.Go(func() {
			if got := names(t, replicas[i%len(replicas)].live().ok(t), "taskRuns"); !slices.Equal(got, []string{shopNS + "/a-unit"}) {
				t.Errorf("a caller got %v", got)
			}
		})
	}
	eventually(t, "the cluster to be asked", asked)
	gate.release()
	all.Wait()
	c.fail(nil)
}

// rule: R241
func TestAHerdOverTwoReplicasCostsOneListOfEachKind(t *testing.T) {
	for name, start := range map[string]func(*testing.T) string{
		"miniredis": func(t *testing.T) string { return "redis://" + miniredis.RunT(t).Addr() },
		"redis":     func(t *testing.T) string { return devtest.Redis(t).URL },
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t)
			c.addRuns(shopNS + "/a")
			c.addTasks("a", shopNS+"/a-unit")
			url := start(t)
			replicas := []*replica{newReplica(t, c, url), newReplica(t, c, url)}
			inFlight := func(p *replica) bool { return p.underWay.Load() == 25 }
			herd(t, c, replicas, 50, func() bool {
				return c.total() >= 2 && inFlight(replicas[0]) && inFlight(replicas[1])
			})
			if got := c.lists(); got[shopNS+"/pipelineruns"] != 1 || got[shopNS+"/taskruns"] != 1 || len(got) != 2 {
				t.Errorf("the cluster was asked for %v", got)
			}
		})
	}
}

// gauge reads a metric of a replica by the value of its one label, "" for none.
func gauge(t *testing.T, p *replica, name, label string) float64 {
	t.Helper()
	families, err := p.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if f.GetName() == name && (label == "" || l.GetValue() == label) {
					return m.GetGauge().GetValue()
				}
			}
		}
	}
	t.Fatalf("no metric %s %s", name, label)
	return 0
}

func TestWithoutRedisEachReplicaReadsForItself(t *testing.T) {
	real := devtest.Redis(t)
	c := newCluster(t)
	c.addRuns(shopNS + "/a")
	c.addTasks("a", shopNS+"/a-unit")
	real.Process.Kill() // away at start
	replicas := []*replica{newReplica(t, c, real.URL), newReplica(t, c, real.URL)}
	up := func(p *replica) bool { return gauge(t, p, "glidepath_cache_redis_up", "") == 1 }
	if up(replicas[0]) || up(replicas[1]) {
		t.Error("the gauge says that Redis is there")
	}
	start := time.Now()
	herd(t, c, replicas, 50, func() bool { return c.total() == 4 })
	if took := time.Since(start); took >= testConfig.Redis.Time { // as it would be if calls waited for Redis
		t.Errorf("the herd took %s", took)
	}
	if got := c.lists(); got[shopNS+"/pipelineruns"] != 2 || got[shopNS+"/taskruns"] != 2 {
		t.Errorf("the cluster was asked for %v", got)
	}

	if err := real.Process.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "Redis to be used", func() bool { return up(replicas[0]) && up(replicas[1]) })
	before := c.total()
	herd2(t, c, replicas)
	if got := c.total() - before; got != 1 {
		t.Errorf("with Redis back the cluster was asked %d times for a list that both replicas show", got)
	}

	real.Process.Kill() // away later
	for i := range 10 {
		replicas[i%2].tasks(fmt.Sprintf("?pipelineRuns=other-%d", i)).ok(t)
	}
	eventually(t, "the gauges to say so", func() bool { return !up(replicas[0]) && !up(replicas[1]) })
}

// herd2 has callers of both replicas ask for a list that nobody asked for yet.
func herd2(t *testing.T, c *cluster, replicas []*replica) {
	t.Helper()
	gate := newGate(t)
	c.fail(func(w http.ResponseWriter, r *http.Request) {
		<-gate.open
		c.page(w, r.URL.Query(), "taskruns", "")
	})
	var all sync.WaitGroup
	for i := range 20 {
		all.Go(func() { replicas[i%2].tasks("?pipelineRuns=fresh").ok(t) })
	}
	eventually(t, "all callers to wait", func() bool {
		return replicas[0].underWay.Load() == 10 && replicas[1].underWay.Load() == 10
	})
	gate.release()
	all.Wait()
	c.fail(nil)
}

func TestARedisThatSomebodyWroteIntoChangesNoAnswer(t *testing.T) {
	m := miniredis.RunT(t)
	url := "redis://" + m.Addr()
	c := newCluster(t)
	c.addRuns(shopNS+"/a", "app-other-cicd/b")
	newReplica(t, c, url).live().ok(t)
	other := newReplica(t, c, url)
	other.do(other.request("/v1/apps/other/live", claims("listLive", about("other", "app-other-cicd", "uid-of-other")))).ok(t)
	const key, otherKey = "glidepath:1:livehub:{pipelineruns:uid-of-shop}", "glidepath:1:livehub:{pipelineruns:uid-of-other}"
	eventually(t, "the lists in Redis", func() bool { return m.Exists(key) && m.Exists(otherKey) && !anyLock(m) })
	foreign, err := m.Get(otherKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"garbage": "garbage", "another app's list": foreign} {
		t.Run(name, func(t *testing.T) {
			if err := m.Set(key, value); err != nil {
				t.Fatal(err)
			}
			if got := names(t, newReplica(t, c, url).live().ok(t), "pipelineRuns"); !slices.Equal(got, []string{shopNS + "/a"}) {
				t.Errorf("it shows %v", got)
			}
		})
	}
	for _, k := range m.Keys() {
		if raw, err := m.Get(k); err == nil && (len(raw) == 0 || slices.Contains([]string{"garbage"}, raw)) {
			t.Errorf("%s is left as %q", k, raw)
		}
	}
}
