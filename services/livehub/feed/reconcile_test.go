package feed

import (
	"testing"
	"testing/synctest"
	"time"
)

// unseen gives a feed of a and b with a viewer, whose watches missed something that
// happened.
func unseen(t *testing.T, happens func(w *world)) (*world, *Feed, *screen) {
	t.Helper()
	w := newWorld()
	w.put(PipelineRuns, "a", "1")
	w.put(PipelineRuns, "b", "1")
	f := start(t, w, "uid")
	s := open(t, f, "", nil)
	synctest.Wait()
	w.set(func() { w.deaf = true })
	happens(w)
	w.set(func() { w.deaf = false })
	w.put(PipelineRuns, "b", "2") // so that the watch is beyond what it did not tell
	return w, f, s
}

// A watch cache has been seen to lose changes for good.
func TestWhatAWatchCacheLostIsFound(t *testing.T) {
	for name, happens := range map[string]func(w *world){
		"a deletion":                        func(w *world) { w.remove(PipelineRuns, "a") },
		"a change":                          func(w *world) { w.put(PipelineRuns, "a", "2") },
		"an object":                         func(w *world) { w.put(PipelineRuns, "c", "1") },
		"one gone, one come":                func(w *world) { w.remove(PipelineRuns, "a"); w.put(PipelineRuns, "c", "1") },
		"one gone, and come under its name": func(w *world) { w.remove(PipelineRuns, "a"); w.put(PipelineRuns, "a", "9") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, f, s := unseen(t, happens)
				time.Sleep(watchTime + watchSpread + time.Minute)
				s.sees(w)
				late := open(t, f, "", nil)
				w.put(PipelineRuns, "b", "3")
				synctest.Wait()
				s.sees(w)
				late.sees(w)
				if s.resets > 0 {
					t.Error("the viewer was reset")
				}
				late.close()
				s.close()
			})
		})
	}
}

// What came after a repair is not sent again to those who have seen it, so the
// repair must not be either.
func TestWhoComesBackIsNotTakenBackToARepair(t *testing.T) {
	for name, lost := range map[string]func(w *world){
		"of an object that went": func(w *world) { w.remove(PipelineRuns, "a") },
		"of a change":            func(w *world) { w.put(PipelineRuns, "a", "2") },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, f, s := unseen(t, lost)
				time.Sleep(watchTime + watchSpread + time.Minute)
				s.sees(w) // it is repaired
				w.put(PipelineRuns, "a", "3")
				synctest.Wait()
				s.sees(w)
				id, state := s.close()
				again := open(t, f, id, state)
				synctest.Wait()
				again.sees(w)
				w.put(PipelineRuns, "b", "3")
				synctest.Wait()
				again.sees(w)
				again.close()
			})
		})
	}
}

func TestWhatIsKnownIsComparedByNamesAloneAndSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(PipelineRuns, "a", "1")
		f := start(t, w, "uid")
		s := open(t, f, "", nil)
		const hours = 5
		for range hours {
			time.Sleep(time.Hour)
			w.put(PipelineRuns, "a", "2")
		}
		synctest.Wait()
		w.set(func() {
			most, least := hours*int(time.Hour/watchTime), hours*int(time.Hour/(watchTime+watchSpread))
			if n := w.names[PipelineRuns]; n < least-1 || n > most || w.lists[PipelineRuns] > 0 {
				t.Errorf("in %d hours names are read %d times, and objects %d times", hours, n, w.lists[PipelineRuns])
			}
		})
		s.sees(w)
		s.close()
	})
}

// What cannot be compared is no reason to lose a viewer, and is compared later.
func TestAComparisonThatFailsChangesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, _, s := unseen(t, func(w *world) { w.remove(PipelineRuns, "a") })
		w.elsewhere(10)
		w.forget() // that version is not to be had any more
		time.Sleep(watchTime + watchSpread + time.Minute)
		w.put(PipelineRuns, "b", "3")
		time.Sleep(2 * (watchTime + watchSpread))
		synctest.Wait()
		s.sees(w)
		if s.resets > 0 {
			t.Error("the viewer was reset")
		}
		s.close()
	})
}
