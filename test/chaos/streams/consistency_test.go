package streams_test

import (
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/test/chaos/steps"
)

// someChanges are made at least before and after each step of a fault.
const someChanges = 80

// faults are what happens, one after the other.
func faults(w *world) []fault {
	hubs := make([]*process.Process, 0, replicas)
	for _, l := range w.gw.Livehubs {
		hubs = append(hubs, l.Process)
	}
	redis, api, etcd := w.gw.Redis.Process, apiServer.Process, apiServer.Etcd.Process
	first, second := w.gw.Edges[0].Envoy.Process, w.gw.Edges[1].Envoy.Process
	return []fault{
		{name: "a replica is killed and another stands still", steps: []steps.Step{steps.Both(steps.Kill(hubs[0]), steps.Pause(hubs[1])), steps.Both(steps.Restart(hubs[0]), steps.Resume(hubs[1]))}},
		{name: "all replicas are killed", asleep: true, steps: []steps.Step{steps.Kill(hubs...), steps.Restart(hubs...)}},
		{name: "replicas are updated one by one", steps: []steps.Step{steps.Update(hubs[1]), steps.Update(hubs[2])}},
		{name: "Redis stands still and is killed", steps: []steps.Step{steps.Pause(redis), steps.Both(steps.Resume(redis), steps.Kill(redis)), steps.Restart(redis), steps.Flush(w.gw.Redis.URL)}},
		{name: "a replica is killed while Redis is away", steps: []steps.Step{steps.Kill(redis), steps.Kill(hubs[2]), steps.Both(steps.Restart(redis), steps.Restart(hubs[2]))}},
		{name: "an edge is killed while the other stands still", asleep: true, steps: []steps.Step{steps.Both(steps.Pause(second), steps.Kill(first)), steps.Both(steps.Resume(second), steps.Restart(first))}},
		{name: "the API server stands still, and etcd", coarse: true, steps: []steps.Step{steps.Pause(api), steps.Resume(api), steps.Pause(etcd), steps.Resume(etcd)}},
		{name: "the API server is killed, and a replica", coarse: true, steps: []steps.Step{steps.Kill(api), steps.Both(steps.Kill(hubs[0]), w.restartAPIServer, steps.Restart(hubs[0]))}},
	}
}

func TestWhateverFailsAViewerKnowsInTheEndWhatTheClusterHolds(t *testing.T) {
	w := newWorld(t)
	t.Run("some viewers sleep", func(t *testing.T) { someSleep(t, w) })
	t.Run("an edge is updated", func(t *testing.T) { anEdgeIsUpdated(t, w) })
	for _, f := range faults(w) {
		if !t.Run(f.name, func(t *testing.T) { f.run(t, w) }) {
			break // viewers that are lost stay lost
		}
	}
}

func (f fault) run(t *testing.T, w *world) {
	began, before, made := time.Now(), w.summary(), w.load.Stats().Changes
	var ledgers []*ledger
	if !f.coarse {
		ledgers = w.keep(t)
	}
	end := w.changes(t)
	defer end()
	w.more(t, someChanges)
	wake := w.lull(f.asleep)
	defer wake()
	for _, s := range f.steps {
		if err := s(t.Context()); err != nil {
			t.Fatal(err)
		}
		if f.coarse {
			<-time.After(outage)
		} else {
			w.more(t, someChanges)
		}
	}
	wake()
	w.more(t, someChanges)
	end()
	w.quiet(t, ledgers)
	w.unbroken(t)
	came := w.summary().since(before)
	// Where the cluster itself can be asked, whoever comes back goes on; a slow machine may fail a few.
	if n := total(came.resets); !f.coarse && n > came.connects/5 {
		t.Errorf("%d of %d who came got everything anew: %v", n, came.connects, came.resets)
	}
	t.Logf("%d changes in %.1f s: %s", w.load.Stats().Changes-made, time.Since(began).Seconds(), came)
}

// someSleep has viewers sleep while more changes than they may be behind. A viewer that takes nothing for long is broken off.
func someSleep(t *testing.T, w *world) {
	before, ledgers, wake := w.summary(), w.keep(t), w.lull(true)
	defer wake()
	if err := w.large(t.Context()); err != nil {
		t.Fatal(err)
	}
	wake()
	w.quiet(t, ledgers)
	w.unbroken(t)
	came := w.summary().since(before)
	if came.ends["lagged"] == 0 && came.broken == 0 {
		t.Error("nobody fell behind")
	}
	t.Log(came)
}

// anEdgeIsUpdated costs each of its viewers a reconnect, the others nothing, and nobody a change.
func anEdgeIsUpdated(t *testing.T, w *world) {
	var before []counts
	for _, v := range w.crowd {
		before = append(before, v.counted())
	}
	there := w.at(0)
	fault{steps: []steps.Step{steps.Update(w.gw.Edges[0].Envoy.Process)}}.run(t, w)
	moved := 0
	for i, v := range w.crowd {
		if v.habit != stays {
			continue
		}
		came, want := v.counted().since(before[i]), 0
		if there[v] {
			want = 1
		}
		moved += want
		if came.connects != want || came.broken != want || came.snapshots != 0 {
			t.Errorf("%s, want %d connects: %v", v.name, want, came)
		}
	}
	if moved == 0 {
		t.Error("nobody was at that edge")
	}
}

// at says who is at an edge.
func (w *world) at(edge int) map[*viewer]bool {
	there := map[*viewer]bool{}
	for _, v := range w.crowd {
		v.mu.Lock()
		there[v] = v.edge == edge
		v.mu.Unlock()
	}
	return there
}
