package chaos_test

import (
	"context"
	"fmt"
	"maps"
	"os"
	"sync"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/standin/recorder"
	"hangar.io/glidepath/test/chaos/steps"
)

const (
	edges, replicas = 2, 3

	// patience is how long anything may take that has to happen, on however slow a machine.
	patience = time.Minute
	// stepTime bounds one question to a part.
	stepTime = 5 * time.Second
)

// policy bounds calls as an operator would: what a replica does not answer within three seconds is given up. The replica itself
// gives up before.
const policy = "version: 1\ndefaults: {timeout: 8s}\nbackends:\n  livehub: {timeout: 3s}\n"

// world is a gateway of two edges and three replicas under load.
type world struct {
	gw     *devenv.Gateway
	load   *load
	writes *writes

	mu      sync.Mutex
	leavers []*leaver
}

// newWorld starts a gateway that shares a Redis, and the load on it.
func newWorld(t *testing.T, redisURL string) *world {
	t.Helper()
	planned, err := recorder.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(planned.Stop)
	w := &world{}
	w.gw, err = devenv.StartGateway(t.Context(), devenv.GatewayConfig{
		Dir: t.ArtifactDir(), Edges: edges, Livehubs: replicas, Faults: true, Relays: true, PlannedTo: planned.Addr,
		Args:   map[string][]string{"livehub": {"--wait=2s"}},
		Static: true, APIServer: apiServer, Redis: &devenv.Redis{URL: redisURL},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.gw.Stop)
	var urls []string
	for _, e := range w.gw.Edges {
		if err := os.WriteFile(e.Policy, []byte(policy), 0o600); err != nil {
			t.Fatal(err)
		}
		urls = append(urls, e.URL)
	}
	verifier, err := identity.NewVerifier(identity.VerifierConfig{KeysDir: w.gw.IdentityKeysDir(), Backend: "writes"})
	if err != nil {
		t.Fatal(err)
	}
	cast := newCast(t)
	w.writes = &writes{verifier: verifier, came: map[string]bool{}}
	planned.Answer(w.writes)
	w.load = &load{}
	w.writes.load = w.load
	w.load.start(t, urls, cast, w.leaving)
	return w
}

// leaving gives the parts of those who leave, or have left.
func (w *world) leaving() []*part {
	w.mu.Lock()
	defer w.mu.Unlock()
	var parts []*part
	for _, l := range w.leavers {
		parts = append(parts, l.parts...)
	}
	return parts
}

func (w *world) hire(t *testing.T, name string) *leaver {
	t.Helper()
	l := newLeaver(t, name)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.leavers = append(w.leavers, l)
	return l
}

// settled holds what is known only at the end of a world against it.
func (w *world) settled(t *testing.T) {
	t.Helper()
	eventually(t, "everybody who left is refused", func() error {
		for _, l := range w.leavers {
			for _, p := range l.parts {
				if !w.load.refusedAfter(p) {
					return fmt.Errorf("not seen yet: %s", p.name)
				}
			}
		}
		return nil
	})
	w.quiet(t, w.load.now())
	w.load.stop()
	w.load.check(t)
	for _, id := range w.writes.missing() {
		t.Errorf("a write is told to be done and reached no backend (trace %s)", id)
	}
	w.audited(t)
}

// pids names the process of each part that runs.
func (w *world) pids() map[string]int {
	pids := map[string]int{}
	for _, p := range w.gw.Parts() {
		pids[p.Name] = p.Process.PID()
	}
	pids["etcd"], pids["kube-apiserver"] = apiServer.Etcd.Process.PID(), apiServer.Process.PID()
	return pids
}

// onlyRestarted fails the test when another process than these was started again.
func (w *world) onlyRestarted(t *testing.T, before map[string]int, restarted ...*process.Process) {
	t.Helper()
	now := w.pids()
	for _, p := range restarted {
		maps.DeleteFunc(now, func(_ string, pid int) bool { return pid == p.PID() })
	}
	for name, pid := range now {
		if before[name] != pid {
			t.Errorf("%s was started again", name)
		}
	}
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() error) {
	t.Helper()
	steps.Within(t, patience, what, so)
}

// cleanupContext is for what is undone when the test's own context has ended.
func cleanupContext(t *testing.T) context.Context { return context.WithoutCancel(t.Context()) }
