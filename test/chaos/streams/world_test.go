package streams_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"reflect"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/simulator/load"
	"hangar.io/glidepath/test/chaos/steps"
)

const (
	edges, replicas = 2, 3

	namespaces = 3
	// runs is how many PipelineRuns each has at a time, and pace how many changes a second there are in all.
	runs, pace = 8, 150

	// patience is how long anything may take that has to happen, on however slow a machine.
	patience = 2 * time.Minute
)

// policy gives up a replica that does not begin to answer.
const policy = "version: 1\ndefaults: {timeout: 10s}\n"

// world is a gateway, a cluster that changes, and those who look.
type world struct {
	gw      *devenv.Gateway
	cluster dynamic.Interface
	load    *load.Load
	crowd   []*viewer
	scenes  []*scene
}

// scene is an app, and those who look at it.
type scene struct {
	app, namespace string
	crowd          []*viewer
	// state is what it was at the last quiet point, and at its versions.
	state state
	at    position
}

// apart is an app that the load leaves alone.
const apart = fleet.AppShop

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{}
	w.gw = devtest.Gateway(t, devenv.GatewayConfig{
		Edges: edges, Livehubs: replicas, Faults: true, Static: true, APIServer: apiServer,
		Args: map[string][]string{"livehub": {"--wait=5s"}},
	})
	var urls []string
	for _, e := range w.gw.Edges {
		if err := os.WriteFile(e.Policy, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
		urls = append(urls, e.URL)
	}
	cfg := rest.CopyConfig(apiServer.Admin)
	cfg.QPS = -1
	var err error
	if w.cluster, err = dynamic.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	w.load, err = load.New(load.Config{
		REST: cfg, Namespaces: namespaces, Runs: runs, Rate: pace, Seed: 1, NoController: true, Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.load.Prepare(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
		defer cancel()
		if err := errors.Join(wholeAgain(ctx), w.load.Remove(ctx)); err != nil {
			t.Error(err)
		}
	})
	w.admit(t, urls)
	return w
}

// wholeAgain has a cluster answer that a test has left in the middle of a fault.
func wholeAgain(ctx context.Context) error {
	for _, p := range []*process.Process{apiServer.Etcd.Process, apiServer.Process} {
		p.Resume()
		select {
		case <-p.Done():
			if err := p.Restart(ctx); err != nil {
				return err
			}
		default:
		}
	}
	return nil
}

// admit lets the viewers in: for each app some of each habit.
func (w *world) admit(t *testing.T, urls []string) {
	t.Helper()
	reader, _ := fleet.LookupCaller(fleet.CallerReader)
	token, err := fleet.Token(t.Context(), apiServer.Admin, reader, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ctx, leave := context.WithCancel(t.Context())
	var looking sync.WaitGroup
	for _, app := range append(w.load.Apps(), apart) {
		habits := []habit{stays, stays, stays, stays, restless, restless, forgetful, drowsy}
		if app == apart {
			habits = []habit{stays, drowsy}
		}
		s := &scene{app: app, namespace: "app-" + app + "-cicd"}
		for _, h := range habits {
			v := newViewer(fmt.Sprintf("viewer %d of %s", len(w.crowd), app), h, app, token, urls, uint64(len(w.crowd)))
			s.crowd, w.crowd = append(s.crowd, v), append(w.crowd, v)
			looking.Go(func() { v.look(ctx) })
		}
		w.scenes = append(w.scenes, s)
	}
	t.Cleanup(func() { leave(); looking.Wait() })
	w.quiet(t, nil)
}

// keep has a ledger kept of each namespace until the test ends.
func (w *world) keep(t *testing.T) []*ledger {
	t.Helper()
	var all []*ledger
	for _, s := range w.scenes {
		l, end := keep(t, w.cluster, s.namespace, s.at)
		t.Cleanup(end)
		all = append(all, l)
	}
	return all
}

// lull has the drowsy sleep, if they are to, until wake is called.
func (w *world) lull(really bool) (wake func()) {
	var all []func()
	for _, v := range w.crowd {
		if really && v.habit == drowsy {
			all = append(all, v.sleep())
		}
	}
	return func() {
		for _, wake := range all {
			wake()
		}
	}
}

// quiet waits until every viewer knows what the cluster holds, which nobody changes. Where there are ledgers, each must have got
// each change once.
func (w *world) quiet(t *testing.T, ledgers []*ledger) {
	t.Helper()
	for i, s := range w.scenes {
		var now state
		var at position
		eventually(t, "the cluster answers", func() (err error) { now, at, err = inCluster(t.Context(), w.cluster, s.namespace); return err })
		for _, v := range s.crowd {
			eventually(t, v.name+" knows what there is", func() error { return v.knows(now) })
		}
		if ledgers != nil {
			eventually(t, "the ledger is complete", func() error { return ledgers[i].upTo(s.state, now) })
			s.exact(t, ledgers[i])
		}
		same(t, s.crowd, now)
		for _, v := range s.crowd {
			v.settle(at)
		}
		s.state, s.at = now, at
	}
}

// same compares what viewers know with what there is, to the last field.
func same(t *testing.T, of []*viewer, now state) {
	t.Helper()
	equal := map[string]bool{} // by version and JSON
	for _, v := range of {
		v.mu.Lock()
		for k, got := range v.state {
			id := got.number + string(got.json)
			if _, done := equal[id]; !done {
				var a, b any
				err := errors.Join(json.Unmarshal(got.json, &a), json.Unmarshal(now[k].json, &b))
				equal[id] = err == nil && reflect.DeepEqual(a, b)
			}
			if !equal[id] {
				t.Errorf("%s knows of %s %s %.300s, not %.300s", v.name, k.kind, k.name, got.json, now[k].json)
			}
		}
		v.mu.Unlock()
	}
}

// knows is an error until the viewer knows what there is.
func (v *viewer) knows(want state) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	if d := v.state.differs(want); d != "" {
		return fmt.Errorf("at %s, edge %d, after %+v: %s", v.lastID, v.edge+1, v.counts, d)
	}
	return nil
}

// exact wants everybody to have got each change once.
func (s *scene) exact(t *testing.T, l *ledger) {
	t.Helper()
	if err := l.whole(); err != nil {
		t.Logf("nobody knows what changed in %s: %v", s.namespace, err)
		return
	}
	for _, v := range s.crowd {
		if err := v.exact(l); err != nil {
			t.Errorf("%s: %v", v.name, err)
		}
	}
}

// exact wants each change since the viewer last knew everything to have come once.
func (v *viewer) exact(l *ledger) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	return l.misses(v.base, v.moves)
}

// settle begins anew to write down what comes.
func (v *viewer) settle(at position) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.base, v.moves = at, nil
}

// changes has the cluster change until end is called.
func (w *world) changes(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- w.load.Run(ctx) }()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// more waits until so many changes have been made.
func (w *world) more(t *testing.T, n int64) {
	t.Helper()
	want := w.load.Stats().Changes + n
	eventually(t, fmt.Sprintf("%d more changes are made", n), func() error {
		if now := w.load.Stats().Changes; now < want {
			return fmt.Errorf("%d to go", want-now)
		}
		return nil
	})
}

// unbroken fails the test for every promise that was broken.
func (w *world) unbroken(t *testing.T) {
	t.Helper()
	for _, v := range w.crowd {
		v.mu.Lock()
		for _, f := range v.faults {
			t.Errorf("%s: %s", v.name, f)
		}
		v.faults = nil
		v.mu.Unlock()
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() error) {
	t.Helper()
	steps.Within(t, patience, what, so)
}
