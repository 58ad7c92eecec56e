package feed

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"hangar.io/glidepath/internal/kubelist"
)

// lossy is a world as an API server tells it whose watch cache loses changes.
type lossy struct {
	*world

	mu   sync.Mutex
	lost map[string]bool // versions
}

// lose has what happens next be told by no watch of it.
func (l *lossy) lose(happens func()) {
	var before, after uint64
	l.set(func() { before = l.version })
	happens()
	l.set(func() { after = l.version })
	l.mu.Lock()
	defer l.mu.Unlock()
	for ; before < after; before++ {
		l.lost[strconv.FormatUint(before+1, 10)] = true
	}
}

func (l *lossy) loses(e kubelist.Event) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.lost[e.ResourceVersion]
}

func (l *lossy) Watch(ctx context.Context, kind Kind, from kubelist.WatchFrom) (Watch, error) {
	w, err := l.world.Watch(ctx, kind, from)
	if err != nil {
		return nil, err
	}
	return lossyWatch{w, l}, nil
}

type lossyWatch struct {
	Watch
	of *lossy
}

func (w lossyWatch) Next() (kubelist.Event, error) {
	for {
		e, err := w.Watch.Next()
		if err != nil || e.InitialEventsEnd || !w.of.loses(e) {
			return e, err
		}
	}
}

// losses are what a watch cache may lose of a world with the runs a and b.
func losses() map[string]func(w *world) {
	return map[string]func(w *world){
		"a deletion":                        func(w *world) { w.remove(PipelineRuns, "a") },
		"a change":                          func(w *world) { w.put(PipelineRuns, "a", "2") },
		"an object":                         func(w *world) { w.put(PipelineRuns, "c", "1") },
		"one gone, one come":                func(w *world) { w.remove(PipelineRuns, "a"); w.put(PipelineRuns, "c", "1") },
		"one gone, and come under its name": func(w *world) { w.remove(PipelineRuns, "a"); w.put(PipelineRuns, "a", "9") },
	}
}

// A replica that was told less than others leaves its viewers with less, and
// finds out when they have gone to others, who know of nothing to repair.
func TestWhatOneReplicaLostIsFoundWhereItsViewersGo(t *testing.T) {
	for name, happens := range losses() {
		for where, anew := range map[string]bool{"one that followed": false, "one that begins to": true} {
			for log, shared := range map[string]bool{"with a log": true, "without": false} {
				t.Run(name+", to "+where+", "+log, func(t *testing.T) {
					lostElsewhere(t, happens, anew, shared)
				})
			}
		}
	}
}

func lostElsewhere(t *testing.T, happens func(w *world), anew, shared bool) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w, m := newWorld(), &memory{}
		with := func(c *Config) {
			if shared {
				c.Log = m
			}
		}
		w.put(PipelineRuns, "a", "1")
		w.put(PipelineRuns, "b", "1")
		l := &lossy{world: w, lost: map[string]bool{}}
		here, there := start(t, l, "uid", with), start(t, w, "uid")
		fooled, told := open(t, here, "", nil), open(t, there, "", nil)
		synctest.Wait()
		w.put(TaskRuns, "t", "1")
		synctest.Wait()
		toldID, toldState := told.close() // before anything is lost
		l.lose(func() { happens(w) })
		w.put(PipelineRuns, "b", "2") // which the log has as if nothing had been before
		synctest.Wait()
		id, state := fooled.close()
		if anew {
			w.put(PipelineRuns, "b", "3")
			w.elsewhere(3)
			synctest.Wait()
			there = start(t, w, "uid", with)
		}
		for what, s := range map[string]*screen{
			"that was shown less":     open(t, there, id, state),
			"that was not, and comes": open(t, there, toldID, toldState),
		} {
			time.Sleep(10 * time.Second)
			t.Log("a viewer", what)
			s.sees(w)
			s.close()
		}
	})
}

// What a cluster gives for a version after it was put back is not what it gave
// for it before: not to viewers, and not to the log of what replicas share.
func TestWhatWasBeforeAClusterWasPutBackIsNeverTakenForWhatIs(t *testing.T) {
	for name, tc := range map[string]struct{ shared, reached bool }{
		"with a log, and it is not there again": {true, false},
		"with a log, and it is there again":     {true, true},
		"without, and it is there again":        {false, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, m := newWorld(), &memory{}
				with := func(c *Config) {
					if tc.shared {
						c.Log = m
					}
				}
				w.put(PipelineRuns, "a", "1")
				w.put(PipelineRuns, "b", "1")
				before := start(t, w, "uid", with)
				early, late := open(t, before, "", nil), open(t, before, "", nil)
				synctest.Wait()
				earlyID, earlyState := early.close()
				for range 3 {
					w.put(PipelineRuns, "made up", "1")
				}
				w.remove(PipelineRuns, "a")
				synctest.Wait()
				lateID, lateState := late.close()
				w.putBack(102)
				w.put(PipelineRuns, "b", "2")
				if tc.reached {
					for range 5 {
						w.put(PipelineRuns, "c", "1")
					}
				}
				after := start(t, w, "uid", with)
				for _, s := range []*screen{open(t, after, earlyID, earlyState), open(t, after, lateID, lateState)} {
					time.Sleep(10 * time.Second)
					w.put(PipelineRuns, "b", "3")
					synctest.Wait()
					s.sees(w)
					s.close()
				}
			})
		})
	}
}

// One who comes back to a repair that is large is sent everything once.
func TestWhoContradictsManyRepairsIsShownEverythingOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		for _, name := range []string{"a", "b", "c", "d"} {
			w.put(PipelineRuns, name, "1")
		}
		l := &lossy{world: w, lost: map[string]bool{}}
		here, there := start(t, l, "uid"), start(t, w, "uid")
		s := open(t, there, "", nil)
		synctest.Wait()
		l.lose(func() {
			w.remove(PipelineRuns, "a")
			w.remove(PipelineRuns, "b")
			w.remove(PipelineRuns, "c")
		})
		w.put(PipelineRuns, "d", "2")
		synctest.Wait()
		id, state := s.close()
		again := open(t, here, id, state) // which still has all three
		time.Sleep(watchTime + watchSpread + time.Minute)
		w.put(PipelineRuns, "d", "3")
		synctest.Wait()
		again.sees(w)
		if again.resets > 2 { // into what was lost, and out of it
			t.Errorf("it was reset %d times", again.resets)
		}
		again.close()
	})
}

// begun gives what a stream begins with, without holding it.
func begun(v *Viewer) weak.Pointer[byte] { return weak.Make(&v.First()[0][0]) }

// What a stream began with is much, and is not needed again.
func TestAnOpenStreamHoldsNothingOfWhatItBeganWith(t *testing.T) {
	w := newWorld()
	w.put(PipelineRuns, "a", "1")
	f := start(t, w, "uid")
	v, err := f.Join(t.Context(), "")
	if err != nil {
		t.Fatal(err)
	}
	held := begun(v)
	f.mu.Lock()
	f.snapshot = nil // as the next change has it
	f.mu.Unlock()
	for deadline := time.Now().Add(time.Minute); held.Value() != nil; runtime.GC() {
		if time.Now().After(deadline) {
			t.Fatal("it is held")
		}
	}
	runtime.KeepAlive(v)
}
