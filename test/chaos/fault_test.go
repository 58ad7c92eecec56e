package chaos_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv/process"
)

const (
	// enough is how many calls make it plain what the load gets.
	enough = 10
	// enoughLost is the same of calls that each take as long as their timeout.
	enoughLost = 5
)

// fault is one thing that happens to a part under load.
type fault struct {
	name string
	// strike makes it happen, mend undoes it.
	strike, mend func(context.Context) error
	// felt is an error until the fault shows where it has to.
	felt func(ctx context.Context, w *world, p *phase) error
	// rules are what callers may be told for want of the part, besides that one is away.
	rules []string
	// cuts says that what happens to a backend can cut an answer that it has begun. It is a fault of nobody's then, as long as
	// the caller can tell.
	cuts bool
	// shows is where they may be told that a part is away.
	shows where
	// dark is the number of the edge whose Envoy is gone, from 1.
	dark int
	// restarted are the processes that the fault ended.
	restarted []*process.Process
	// deaf says that rights cannot be changed during the fault: they are, just before.
	deaf bool
}

// run has the fault happen, and then waits until the gateway is whole again by itself.
func (f fault) run(t *testing.T, w *world) {
	pids := w.pids()
	name := strings.ReplaceAll(strings.ToLower(strings.Map(letters, t.Name())), "_", "-")
	leaver := w.hire(t, name[max(0, len(name)-50):])
	for _, p := range leaver.parts {
		eventually(t, p.name+" while it may", func() error {
			if !w.load.servedTo(p) {
				return fmt.Errorf("not served everywhere")
			}
			return nil
		})
	}
	w.quiet(t, w.load.now()) // the calm before
	w.load.enter(&phase{name: "before: " + f.name, rules: f.rules, cuts: f.cuts, dark: f.dark - 1, shows: f.shows})
	struck := time.Now()
	if f.deaf {
		leaver.leave(t)
	}
	if err := f.strike(t.Context()); err != nil {
		t.Fatal(err)
	}
	mended := false
	defer func() {
		if !mended {
			if err := f.mend(cleanupContext(t)); err != nil {
				t.Error(err)
			}
		}
	}()
	during := w.load.then(f.name)
	if !f.deaf {
		leaver.leave(t)
	}
	eventually(t, "the fault shows", func() error { return f.felt(t.Context(), w, during) })
	w.quiet(t, during)
	mended = true
	mending := time.Now()
	if err := f.mend(t.Context()); err != nil {
		t.Fatal(err)
	}
	after := w.recovers(t)
	w.quiet(t, after)
	t.Logf("it took %.1fs, and %.1fs to recover", mending.Sub(struck).Seconds(), time.Since(mending).Seconds())
	t.Log("during the fault:", w.load.summary(during))
	t.Log("until recovered:", w.load.summary(after))
	w.load.enter(&phase{name: "after: " + f.name, rules: f.rules, cuts: f.cuts, dark: -1})
	w.onlyRestarted(t, pids, f.restarted...)
	w.load.check(t)
}

// letters keeps what may stand in the name of a ServiceAccount.
func letters(r rune) rune {
	switch {
	case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
		return r
	default:
		return '_'
	}
}

// seenAt is an error until enough calls of the phase came to this at an edge.
func seenAt(w *world, p *phase, edge int, what string) error {
	least := enough
	if what == timeout {
		least = enoughLost
	}
	if n := w.load.count(p, edge, what); n < least {
		return fmt.Errorf("%d of %d calls at edge %d %s", n, least, edge+1, what)
	}
	return nil
}

// firstEdge wants this of calls at the first edge, while none shows at the second one.
func firstEdge(what string) func(context.Context, *world, *phase) error {
	return func(ctx context.Context, w *world, p *phase) error {
		if err := seenAt(w, p, 0, what); err != nil {
			return err
		}
		return unnoticed(ctx, w, p)
	}
}

// somebody wants this of a call at any edge, while others are served everywhere.
func somebody(what string) func(context.Context, *world, *phase) error {
	return func(ctx context.Context, w *world, p *phase) error {
		if w.load.count(p, -1, what) == 0 {
			return fmt.Errorf("no call %s", what)
		}
		return allEdges(served)(ctx, w, p) // each part is served too, but not often: a call that is lost takes its time
	}
}

// allEdges wants this of calls at every edge.
func allEdges(what string) func(context.Context, *world, *phase) error {
	return func(_ context.Context, w *world, p *phase) error {
		for edge := range w.gw.Edges {
			if err := seenAt(w, p, edge, what); err != nil {
				return err
			}
		}
		return nil
	}
}
