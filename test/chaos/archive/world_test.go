package archive_test

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/test/chaos/steps"
)

const (
	replicas, callers = 2, 8

	// fillTime is how long a reading of the archive may take here, and so how long one that hangs is waited for.
	fillTime = 5 * time.Second
	// pace is how often something changes.
	pace = 30 * time.Millisecond
	// many is more than a page of the archive.
	many = 220

	// patience is how long anything may take that has to happen, on however slow a machine.
	patience = 2 * time.Minute
)

// policy gives up a replica that does not answer.
const policy = "version: 1\ndefaults: {timeout: 6s}\n"

// world is a gateway, an archive that changes, and those who read it.
type world struct {
	gw     *devenv.Gateway
	token  string
	prober *caller
	began  time.Time
	apps   []*app
	others map[string]string // runs of the sample fleet, as a list of the fleet shows them

	// still is held by whoever must have nothing change.
	still sync.RWMutex

	mu    sync.Mutex
	rand  *rand.Rand
	made  int
	runs  map[string]*run
	tests map[string]*execution
	known map[string]*known // by what was answered
	// first is when something was first asked for, by its path, and recent is what was asked for in this fault.
	first  map[string]time.Time
	recent map[string]question
	faults []string
	counts counts
}

// counts is what became of calls: how many were answered, by operation, and how many failed, by rule.
type counts struct {
	answered, failed map[string]int
	broke            int
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{
		began: time.Now(), runs: map[string]*run{}, tests: map[string]*execution{}, known: map[string]*known{}, first: map[string]time.Time{}, others: map[string]string{},
		rand: rand.New(rand.NewPCG(1, 1)),
	}
	w.forgetCounts()
	w.gw = devtest.Gateway(t, devenv.GatewayConfig{
		Runs: replicas, Static: true, APIServer: apiServer,
		Args: map[string][]string{"runs": {"--wait=4s", "--fill-time=" + fillTime.String()}},
	})
	if err := os.WriteFile(w.gw.Edges[0].Policy, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	reader, _ := fleet.LookupCaller(fleet.CallerReader)
	var err error
	if w.token, err = fleet.Token(t.Context(), apiServer.Admin, reader, time.Hour); err != nil {
		t.Fatal(err)
	}
	w.prober = newCaller(w.gw.URL, w.token, 0)
	t.Cleanup(w.prober.http.CloseIdleConnections)
	w.knowOthers(t)
	for i := range 3 {
		a := &app{name: fmt.Sprintf("apron-%d", i)}
		a.namespace = "app-" + a.name + "-cicd"
		w.apps = append(w.apps, a)
		g, err := w.start(t.Context(), a)
		if err != nil {
			t.Fatal(err)
		}
		for range []int{many, 5, 5}[i] {
			if err := w.whole(w.begin(g, true, "", 0), 0); err != nil {
				t.Fatal(err)
			}
		}
		w.know(t, g)
	}
	return w
}

// knowOthers notes the runs of the sample fleet, which stay as they are.
func (w *world) knowOthers(t *testing.T) {
	t.Helper()
	eventually(t, "the fleet is read", func() error {
		a, err := w.prober.get(t.Context(), "/v1/runs?limit=1000")
		if err != nil {
			return err
		}
		var list struct{ Runs []json.RawMessage }
		if err := json.Unmarshal(a.body, &list); err != nil {
			return err
		}
		for _, raw := range list.Runs {
			r, err := readRow(raw)
			if err != nil {
				return err
			}
			w.others[r.result()] = string(raw)
		}
		return nil
	})
}

// changes has the archive change until end is called.
func (w *world) changes(t *testing.T) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	random := rand.New(rand.NewPCG(3, 3))
	go func() {
		tick := time.NewTicker(pace)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				done <- nil
				return
			case <-tick.C:
			}
			if err := w.change(random); err != nil {
				done <- err
				return
			}
		}
	}()
	return sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// change has one thing happen to an app.
func (w *world) change(random *rand.Rand) error {
	w.still.RLock()
	defer w.still.RUnlock()
	g := w.apps[random.IntN(len(w.apps))].now()
	const atOnce = 4
	switch n := random.IntN(40); {
	case n == 0:
		return w.forgetOne(g, random)
	case n < 3:
		return w.test(g)
	case n < 5:
		return w.whole(w.begin(g, true, "", 1+random.IntN(2)), random.IntN(len(outcomes)))
	case len(g.open) < atOnce && n < 20:
		event := ""
		if n < 10 { // two runs of one event
			event = uid(w.made+1, 99)
			if err := w.whole(w.begin(g, false, event, 1), 1); err != nil {
				return err
			}
		}
		r := w.begin(g, false, event, random.IntN(4))
		w.plan(r, random)
		w.opened(g, append(slices.Clone(g.open), r))
		return nil
	case len(g.open) == 0:
		return nil
	}
	r := g.open[random.IntN(len(g.open))]
	last, err := r.next(random)
	if last {
		w.opened(g, slices.DeleteFunc(slices.Clone(g.open), func(o *run) bool { return o == r }))
	}
	return err
}

func (w *world) opened(g *generation, open []*run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	g.open = open
}

// forgetOne has the archive forget a run of which all has happened, but not the first one.
func (w *world) forgetOne(g *generation, random *rand.Rand) error {
	r := g.runs[random.IntN(len(g.runs))]
	if r == g.runs[0] || slices.Contains(g.open, r) || !ended(r.record.last()) {
		return nil
	}
	return w.forget(r)
}

// more waits until so many more calls have come to something.
func (w *world) more(t *testing.T, n int) {
	t.Helper()
	total := func() int {
		c := w.counted()
		sum := c.broke
		for _, m := range []map[string]int{c.answered, c.failed} {
			for _, n := range m {
				sum += n
			}
		}
		return sum
	}
	want := total() + n
	eventually(t, fmt.Sprintf("%d more calls are made", n), func() error {
		if now := total(); now < want {
			return fmt.Errorf("%d to go", want-now)
		}
		return nil
	})
}

func (w *world) counted() counts {
	w.mu.Lock()
	defer w.mu.Unlock()
	return counts{maps.Clone(w.counts.answered), maps.Clone(w.counts.failed), w.counts.broke}
}

// forgetCounts begins to count anew.
func (w *world) forgetCounts() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.counts = counts{map[string]int{}, map[string]int{}, 0}
	w.recent = map[string]question{}
}

// unbroken fails the test for every promise that was broken.
func (w *world) unbroken(t *testing.T) {
	t.Helper()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, f := range w.faults {
		t.Error(f)
	}
	w.faults = nil
}

// warmed waits until one of the replicas has read what it reads after a start.
func (w *world) warmed(t *testing.T) {
	t.Helper()
	eventually(t, "the cache is warm", func() error {
		for _, b := range w.gw.Runs {
			log, err := os.ReadFile(b.Process.Log())
			if err != nil {
				return err
			}
			if strings.Contains(string(log), "the cache was warmed") {
				return nil
			}
		}
		return fmt.Errorf("no replica says so")
	})
}

func (w *world) processes() []*process.Process {
	var all []*process.Process
	for _, b := range w.gw.Runs {
		all = append(all, b.Process)
	}
	return all
}

// eventually waits until something is so.
func eventually(t *testing.T, what string, so func() error) {
	t.Helper()
	steps.Within(t, patience, what, so)
}
