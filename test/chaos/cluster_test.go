package chaos_test

import "testing"

func TestNoFaultOfANodeOfAClusterShowsAtTheEdges(t *testing.T) {
	needsDocker(t)
	nodes, url := startCluster(t)
	w := newWorld(t, url)
	w.recovers(t)
	for _, f := range redisFaults(nodes[1], withoutRedis) {
		t.Run(f.name, func(t *testing.T) { f.run(t, w) })
	}
	w.settled(t)
}
