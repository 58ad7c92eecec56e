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

func (c *clocked) Watch(ctx context.Context, kind Kind, from kubelist.WatchFrom) (Watch, error) {
	c.mu.Lock()
	c.began = append(c.began, time.Now())
	c.mu.Unlock()
	return c.world.Watch(ctx, kind, from)
}

// again begins to note anew.
func (c *clocked) again() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.began = nil
}

// spread counts the watches that began. At no moment may those of many feeds have.
func (c *clocked) spread(t *testing.T, feeds int) int {
	t.Helper()
	c.mu.Lock()
	defer c.mu.Unlock()
	atOnce := map[time.Time]int{}
	for _, at := range c.began {
		atOnce[at.Truncate(time.Millisecond)]++
	}
	for at, n := range atOnce {
		if n > feeds/4 {
			t.Errorf("%d of %d watches begin within the millisecond %s", n, len(c.began), at)
		}
	}
	return len(c.began)
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
		w.again()
		w.disturb()
		time.Sleep(10 * time.Second)
		// Each kind of each feed is refused once, and then reads everything.
		if n := w.spread(t, feeds); n != 2*2*feeds {
			t.Errorf("%d watches begin", n)
		}
	})
}

// Nor does one that is to end, and ends all watches, have all who watch compare what they know at the same moment.
func TestAnAPIServerThatEndsIsNotLeftByAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const feeds = 40
		w := &clocked{world: newWorld()}
		for range feeds {
			start(t, w, "uid")
		}
		time.Sleep(time.Minute)
		w.again()
		w.replace()
		time.Sleep(10 * time.Second)
		began := w.spread(t, feeds)
		w.set(func() {
			if n := w.names[PipelineRuns] + w.names[TaskRuns]; began != 2*feeds || n > 0 {
				t.Errorf("%d watches begin, and names are read %d times", began, n)
			}
		})
	})
}

// A permanent 410 must not be answered with list after list.
func TestAnAPIServerThatForgetsAtOnceIsAskedEverMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.unstreamed = true
		start(t, w, "uid")
		w.set(func() { w.oldest = 1 << 40 })
		w.disturb()
		time.Sleep(10 * time.Minute)
		if c := w.counts(); c.lists > 40 {
			t.Errorf("in ten minutes everything is read %d times", c.lists)
		}
	})
}

// An API server from before streamed lists takes the wish for one for none, and sends what there is without an end.
func TestABeginningWithoutAnEndIsReadAsAList(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.endless = true
		w.put(PipelineRuns, "a", "1")
		f := New(Config{NamespaceUID: "uid", Source: w, PollEvery: 2 * time.Second})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		time.Sleep(beginTime + 2*firstPause)
		if err := f.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		s := open(t, f, "", nil)
		w.put(PipelineRuns, "a", "2")
		synctest.Wait()
		s.sees(w)
		s.close()
		cancel()
		<-done
	})
}

// What polling callers share is up to two seconds old: older than what a watch has shown until now.
func TestAListThatWasKeptForOthersIsNoClusterThatWasPutBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(PipelineRuns, "a", "1")
		f := start(t, w, "uid")
		s := open(t, f, "", nil)
		kept, err := w.Read(t.Context(), PipelineRuns)
		if err != nil {
			t.Fatal(err)
		}
		w.put(PipelineRuns, "a", "2")
		synctest.Wait()
		w.set(func() { w.kept, w.forbidden = kept, true })
		w.disturb()
		time.Sleep(time.Second)
		w.set(func() { w.kept = nil })
		w.put(PipelineRuns, "a", "3")
		time.Sleep(10 * time.Second)
		s.sees(w) // which it does not once the feed has ended
		if s.resets > 0 {
			t.Error("the viewer was reset")
		}
		s.close()
	})
}
