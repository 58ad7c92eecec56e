package explain_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/synctest"
)

// gate gives logs that do not come before it is opened, and counts those that were
// asked for by run.
type gate struct {
	open  chan struct{}
	begun chan string
}

func (g *gate) logs(ctx context.Context, uid string) (io.ReadCloser, error) {
	run, _, _ := strings.Cut(strings.TrimPrefix(uid, "uid-"), ".")
	g.begun <- run
	select {
	case <-g.open:
		return io.NopCloser(strings.NewReader("boom\n")), nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// asked gives how many logs of each run were asked for since.
func (g *gate) asked() map[string]int {
	synctest.Wait()
	all := map[string]int{}
	for len(g.begun) > 0 {
		all[<-g.begun]++
	}
	return all
}

// run gives the TaskRuns of a run, all of which failed.
func run(name string, taskRuns int) []object {
	all := make([]object, taskRuns)
	for i := range all {
		all[i] = taskRun(fmt.Sprintf("%s.%d", name, i), "unit=1")
	}
	return all
}

func TestLogsAreExplainedAFewAtOnceAndOfEachRunFewer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		c, g := own(t, "Boom", "boom"), &gate{make(chan struct{}), make(chan string, 100)}
		ended := make(chan error, 4)
		begin := func(ctx context.Context, name string) {
			taskRuns := archived(t, run(name, 5)...)
			go func() {
				entries, err := c.Explain(ctx, taskRuns, g.logs)
				if err == nil && (len(entries) != 5 || entries[4].KnownFailure == nil) {
					err = fmt.Errorf("explained as %+v", entries)
				}
				ended <- err
			}()
		}
		begin(t.Context(), "a")
		if got := g.asked(); got["a"] != 2 {
			t.Errorf("of one run alone: %v", got)
		}
		begin(t.Context(), "b")
		if got := g.asked(); got["b"] != 2 {
			t.Errorf("of a second run: %v", got)
		}
		waits, leave := context.WithCancel(t.Context())
		begin(waits, "c")
		begin(t.Context(), "d")
		if got := g.asked(); len(got) > 0 {
			t.Errorf("beyond what may be at once: %v", got)
		}
		leave()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			t.Errorf("who waited and left got %v", err)
		}
		close(g.open)
		for range 3 {
			if err := <-ended; err != nil {
				t.Error(err)
			}
		}
		if got := g.asked(); got["c"] > 0 || got["a"] != 3 || got["b"] != 3 || got["d"] != 5 {
			t.Errorf("in the end: %v", got)
		}
	})
}
