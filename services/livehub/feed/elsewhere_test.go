package feed

import (
	"context"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/kubelist"
)

// Hubs elsewhere have lost what came between the last event of a replay and the moment from which a viewer was sent what is new.
func TestWhatComesWhileAViewerIsTakenUpIsNotLost(t *testing.T) {
	for name, back := range map[string]bool{"a new one": false, "one that comes back": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.put(PipelineRuns, "a", "1")
				f := start(t, w, "uid")
				id := ""
				if back {
					s := open(t, f, "", nil)
					synctest.Wait()
					id, _ = s.close()
				}
				w.put(PipelineRuns, "a", "2")
				synctest.Wait()
				v, err := f.Join(t.Context(), id)
				if err != nil {
					t.Fatal(err)
				}
				first := string(slices.Concat(v.First()...))
				w.put(PipelineRuns, "a", "3")
				synctest.Wait()
				follower := v.follower(Bounds{})
				after, _, complete := follower.Topic.After(follower.Cursor)
				var frames []byte
				for _, c := range after {
					frames = append(frames, follower.Frame(c)...)
				}
				all := first + string(frames)
				if !complete || strings.Count(all, `"spec":"2"`) != 1 || strings.Count(all, `"spec":"3"`) != 1 {
					t.Errorf("it is sent %q", all)
				}
			})
		})
	}
}

// clocked notes when watches begin.
type clocked struct {
	*world

	mu    sync.Mutex
	began []time.Time
}

func (c *clocked) Watch(ctx context.Context, kind Index, from kubelist.WatchFrom) (Watch, error) {
	c.mu.Lock()
	c.began = append(c.began, time.Now())
	c.mu.Unlock()
	return c.world.Watch(ctx, kind, from)
}

// An API server that was replaced knows nothing of before, and whoever watched would read everything anew at the same moment.
func TestAnAPIServerThatForgotIsNotAskedByAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const feeds = 40
		w := &clocked{world: newWorld()}
		for range feeds {
			start(t, w, "uid")
		}
		synctest.Wait()
		w.elsewhere(1)
		w.forget()
		w.mu.Lock()
		w.began = nil
		w.mu.Unlock()
		w.disturb()
		time.Sleep(10 * time.Second)
		w.mu.Lock()
		defer w.mu.Unlock()
		atOnce := map[time.Time]int{}
		for _, at := range w.began {
			atOnce[at.Truncate(time.Millisecond)]++
		}
		// Each kind of each feed is refused once, and then reads everything.
		if len(w.began) != 2*2*feeds {
			t.Errorf("%d watches begin", len(w.began))
		}
		for at, n := range atOnce {
			if n > feeds/4 {
				t.Errorf("%d of %d watches begin within the millisecond %s", n, len(w.began), at)
			}
		}
	})
}
