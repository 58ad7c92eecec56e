package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/standin/faultproxy"
	"hangar.io/glidepath/test/chaos/steps"
)

// timeout is the rule of a backend that does not answer in time.
const timeout = "GP-EDGE-504"

// silence is an API server that cannot be reached: every request is lost.
var silence = faultproxy.Fault{Delay: time.Hour}

func TestNoFaultOfAPartLetsAnybodyInOrLeavesAnybodyHanging(t *testing.T) {
	needsDocker(t)
	l := newLogin()
	shared := startNode(t, "redis", l, "maxmemory-policy noeviction\n")
	w := newWorld(t, redisURL(l, shared))
	w.recovers(t)
	for _, group := range [][]fault{
		edgeFaults(w), backendFaults(w), redisFaults(shared, withoutRedis), contentFaults(shared), clusterFaults(w),
	} {
		for _, f := range group {
			t.Run(f.name, func(t *testing.T) { f.run(t, w) })
		}
	}
	w.settled(t)
}

// edgeFaults happen to the parts of the first edge.
func edgeFaults(w *world) []fault {
	e := w.gw.Edges[0]
	return []fault{
		{name: "the authz of an edge is killed", strike: steps.Kill(e.Authz), mend: steps.Restart(e.Authz), shows: firstOnly, felt: firstEdge("GP-EDGE-503"), restarted: just(e.Authz)},
		{name: "the authz of an edge stands still", strike: steps.Pause(e.Authz), mend: steps.Resume(e.Authz), shows: firstOnly, felt: firstEdge("GP-EDGE-503")},
		{name: "the xds of an edge is killed", strike: steps.Kill(e.XDS), mend: steps.Restart(e.XDS), felt: unnoticed, restarted: just(e.XDS)},
		{name: "the xds of an edge stands still", strike: steps.Pause(e.XDS), mend: steps.Resume(e.XDS), felt: unnoticed},
		{name: "an Envoy is killed", strike: steps.Kill(e.Envoy.Process), mend: steps.Restart(e.Envoy.Process), shows: firstOnly, felt: firstEdge(broken), dark: 1, restarted: just(e.Envoy.Process)},
		{name: "an Envoy stands still", strike: steps.Pause(e.Envoy.Process), mend: steps.Resume(e.Envoy.Process), shows: firstOnly, felt: unnoticed},
	}
}

// backendFaults happen to replicas of livehub.
func backendFaults(w *world) []fault {
	var all, first []*process.Process
	for _, l := range w.gw.Livehubs {
		all = append(all, l.Process)
	}
	first = all[:1]
	one := w.gw.Livehubs[1]
	return []fault{
		{name: "a replica is killed", strike: steps.Kill(first...), mend: steps.Restart(first...), felt: unnoticed, cuts: true, restarted: first},
		{name: "all replicas are killed", strike: steps.Kill(all...), mend: steps.Restart(all...), shows: anywhere, felt: allEdges("GP-EDGE-503"), cuts: true, restarted: all},
		{name: "a replica stands still", strike: steps.Pause(all[2]), mend: steps.Resume(all[2]), felt: somebody(timeout), cuts: true, rules: []string{timeout}},
		{name: "all replicas stand still", strike: steps.Pause(all...), mend: steps.Resume(all...), shows: anywhere, felt: allEdges(timeout), cuts: true, rules: []string{timeout}},
		{
			name: "a replica is cut off from the edges", felt: somebody(timeout), cuts: true, rules: []string{timeout},
			strike: func(context.Context) error { one.Relay.Cut(); return nil },
			mend:   func(context.Context) error { one.Relay.Mend(); return nil },
		},
	}
}

// redisFaults happen to a node. What is felt of them depends on what the node is.
func redisFaults(n *node, felt func(context.Context, *world, *phase) error) []fault {
	return []fault{
		{name: "a Redis is killed", strike: n.Kill, mend: n.Start, felt: felt},
		{name: "a Redis stands still", strike: n.Pause, mend: n.Resume, felt: felt},
		{name: "a Redis is cut off", strike: n.Cut, mend: n.Join, felt: felt},
	}
}

// contentFaults happen to what a Redis holds.
func contentFaults(n *node) []fault {
	return []fault{
		{
			name: "a Redis is full", felt: withoutRedis,
			strike: func(ctx context.Context) error { return n.db.ConfigSet(ctx, "maxmemory", "1").Err() },
			mend:   func(ctx context.Context) error { return n.db.ConfigSet(ctx, "maxmemory", "0").Err() },
		},
		{
			name:   "a Redis loses everything, again and again",
			strike: func(ctx context.Context) error { return forget(ctx, n) },
			mend:   func(ctx context.Context) error { return forget(ctx, n) },
			felt: func(ctx context.Context, w *world, p *phase) error {
				return errors.Join(forget(ctx, n), unnoticed(ctx, w, p))
			},
		},
	}
}

func forget(ctx context.Context, n *node) error {
	return errors.Join(n.db.FlushAll(ctx).Err(), n.db.ScriptFlush(ctx).Err())
}

// clusterFaults happen to the API server and what it stands on.
func clusterFaults(w *world) []fault {
	const sourceFailed = "GP-API-502"
	api, etcd := apiServer.Process, apiServer.Etcd.Process
	return []fault{
		{
			name: "the API server cannot be reached", shows: anywhere, felt: forgotten,
			strike: func(context.Context) error { w.gw.Faults.Set(silence); return nil },
			mend:   func(context.Context) error { w.gw.Faults.Clear(); return w.reconnect() },
		},
		{name: "the API server stands still", strike: steps.Pause(api), mend: steps.Resume(api), shows: anywhere, felt: allEdges(sourceFailed), deaf: true},
		{
			name: "the API server is killed", shows: anywhere, felt: allEdges(sourceFailed), deaf: true, restarted: just(api),
			strike: steps.Kill(api),
			// What is not ready is no endpoint of a cluster's API server: until it has read the rights, it refuses everybody.
			mend: func(ctx context.Context) error {
				w.gw.Faults.Down()
				return errors.Join(api.Restart(ctx), w.gw.Faults.Up())
			},
		},
		{name: "etcd stands still", strike: steps.Pause(etcd), mend: steps.Resume(etcd), shows: anywhere, felt: unstored, deaf: true},
		{name: "etcd is killed", strike: steps.Kill(etcd), mend: steps.Restart(etcd), shows: anywhere, felt: unstored, deaf: true, restarted: just(etcd)},
	}
}

// reconnect has requests that are lost end: their connections are closed, as they would be when nothing comes back on them.
func (w *world) reconnect() error {
	w.gw.Faults.Down()
	return w.gw.Faults.Up()
}

// forgotten wants what needs a decision to fail, reads too once theirs are too old.
func forgotten(ctx context.Context, w *world, p *phase) error {
	const sourceFailed = "GP-API-502"
	for edge := range w.gw.Edges {
		for _, part := range w.load.cast {
			if part.user != "" && part.op != "whoami" && w.load.count(p, edge, part.name+": "+sourceFailed) == 0 {
				return fmt.Errorf("%s at edge %d as before", part.name, edge+1)
			}
		}
	}
	return nil
}

// unstored wants the API server to miss its etcd, for as long as some calls take.
func unstored(ctx context.Context, w *world, p *phase) error {
	ctx, cancel := context.WithTimeout(ctx, stepTime)
	defer cancel()
	if apiServer.Client.Discovery().RESTClient().Get().AbsPath("/readyz/etcd").Do(ctx).Error() == nil {
		return errors.New("the API server has its etcd")
	}
	for edge := range w.load.urls {
		if err := seenAt(w, p, edge, refused); err != nil {
			return err
		}
	}
	return nil
}

func just(p *process.Process) []*process.Process { return []*process.Process{p} }
