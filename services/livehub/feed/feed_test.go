package feed

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/kubelist"
)

// start follows a world until the test ends.
func start(t *testing.T, w Source, uid string, change ...func(*Config)) *Feed {
	t.Helper()
	cfg := Config{NamespaceUID: uid, Source: w, PollEvery: 2 * time.Second}
	for _, f := range change {
		f(&cfg)
	}
	f := New(cfg)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		<-done
	})
	if err := f.Ready(t.Context()); err != nil {
		t.Fatal(err)
	}
	return f
}

// rule: R249, R250, R251
func TestAViewerGetsASnapshotAndThenEachChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(PipelineRuns, "b", "1")
		w.put(PipelineRuns, "a", "1")
		f := start(t, w, "uid")
		s := open(t, f, "", nil)
		synctest.Wait()
		w.put(TaskRuns, "t", "1")
		w.put(PipelineRuns, "a", "2")
		w.remove(PipelineRuns, "b")
		synctest.Wait()
		s.sees(w)
		want := []string{
			`snapshot {"pipelineRuns":[{"metadata":{"name":"a","resourceVersion":"102"},"spec":"1"},{"metadata":{"name":"b","resourceVersion":"101"},"spec":"1"}],"taskRuns":[]}`,
			`change {"type":"upsert","kind":"TaskRun","name":"t","object":{"metadata":{"name":"t","resourceVersion":"103"},"spec":"1"}}`,
			`change {"type":"upsert","kind":"PipelineRun","name":"a","object":{"metadata":{"name":"a","resourceVersion":"104"},"spec":"2"}}`,
			`change {"type":"delete","kind":"PipelineRun","name":"b"}`,
		}
		got := s.got()
		slices.Sort(got[1:]) // two kinds come by two watches
		slices.Sort(want[1:])
		if !slices.Equal(got, want) {
			t.Errorf("got\n%s", strings.Join(got, "\n"))
		}
		s.close()
	})
}

// rule: R252
func TestAnObjectThatDoesNotMoveIsNoChange(t *testing.T) {
	for name, forbidden := range map[string]bool{"by watches": false, "by lists": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.forbidden = forbidden
				w.put(PipelineRuns, "a", "1")
				f := start(t, w, "uid")
				s := open(t, f, "", nil)
				time.Sleep(10 * time.Second)
				w.disturb()
				w.elsewhere(5)
				time.Sleep(50 * time.Second)
				for _, e := range s.got()[1:] {
					if !strings.HasPrefix(e, ":") {
						t.Errorf("got %s", e)
					}
				}
				s.close()
			})
		})
	}
}

func TestWithoutARightToWatchListsAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.forbidden = true
		w.put(PipelineRuns, "a", "1")
		f := start(t, w, "uid")
		s := open(t, f, "", nil)
		time.Sleep(time.Second)
		w.put(PipelineRuns, "a", "2")
		w.put(TaskRuns, "t", "1")
		w.put(TaskRuns, "u", "1")
		time.Sleep(2 * time.Second)
		s.sees(w)
		w.remove(TaskRuns, "u")
		w.remove(PipelineRuns, "a")
		time.Sleep(2 * time.Second)
		s.sees(w)
		time.Sleep(56 * time.Second)
		if c := w.counts(); c.lists > 32 || c.watches != 1 {
			t.Errorf("in a minute: %+v", c)
		}
		// Once it is granted, it is used.
		w.set(func() { w.forbidden = false })
		time.Sleep(askAgain)
		before := w.counts()
		w.put(PipelineRuns, "b", "1")
		synctest.Wait()
		s.sees(w)
		time.Sleep(time.Minute)
		if c := w.counts(); c.open != 1 || c.lists != before.lists {
			t.Errorf("a watch is granted, and before it was used %+v, after it %+v", before, c)
		}
		s.close()
	})
}

func TestWithoutStreamedListsTheFirstViewerIsServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.unstreamed = true
		w.put(PipelineRuns, "a", "1")
		f := start(t, w, "uid") // which fails with what Ready gives
		s := open(t, f, "", nil)
		w.put(PipelineRuns, "a", "2")
		w.put(TaskRuns, "t", "1")
		synctest.Wait()
		s.sees(w)
		if c := w.counts(); c != (counts{lists: 1, watches: 2, open: 1}) {
			t.Errorf("got %+v", c)
		}
		// It is asked once, and not again whenever everything is read anew.
		w.forget()
		w.disturb()
		w.elsewhere(1)
		w.forget()
		time.Sleep(time.Minute)
		w.put(PipelineRuns, "b", "1")
		synctest.Wait()
		s.sees(w)
		if c := w.counts(); c.lists > 2 || c.watches > 4 || c.open != 1 {
			t.Errorf("after it was forgotten: %+v", c)
		}
		s.close()
	})
}

func TestAWatchThatBreaksOrExpiresLosesNothing(t *testing.T) {
	for name, meanwhile := range map[string]func(w *world){
		"breaks":                            func(w *world) { w.disturb() },
		"breaks, and what was is forgotten": func(w *world) { w.disturb(); w.forget() },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				for _, n := range []string{"a", "b", "c"} {
					w.put(PipelineRuns, n, "1")
				}
				f := start(t, w, "uid")
				s := open(t, f, "", nil)
				synctest.Wait()
				w.set(func() { w.away = true })
				w.disturb()
				synctest.Wait()
				w.put(PipelineRuns, "a", "2")
				w.remove(PipelineRuns, "b")
				w.put(PipelineRuns, "d", "1")
				w.put(TaskRuns, "t", "1")
				meanwhile(w)
				w.set(func() { w.away = false })
				time.Sleep(2 * time.Minute)
				s.sees(w)
				if s.resets > 0 {
					t.Error("the viewer was reset")
				}
				s.close()
			})
		})
	}
}

func TestAClusterThatCannotBeReadIsToldAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.away = true
		f := New(Config{NamespaceUID: "uid", Source: w, PollEvery: 2 * time.Second})
		ctx, cancel := context.WithCancel(context.Background())
		done := make(chan error, 1)
		go func() { done <- f.Run(ctx) }()
		began := time.Now()
		if err := f.Ready(t.Context()); err == nil || time.Since(began) > time.Second {
			t.Errorf("after %s: %v", time.Since(began), err)
		}
		w.set(func() { w.away = false })
		time.Sleep(2 * time.Minute)
		if err := f.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		cancel()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// What was some time ago must not be taken for what is: it is an error, as for
// those who poll, and those who have a stream are told.
func TestAClusterThatCannotBeReadForLongIsNotShownToAnybodyNew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(PipelineRuns, "a", "1")
		f := start(t, w, "uid")
		s := open(t, f, "", nil)
		synctest.Wait()
		w.set(func() { w.away = true })
		w.disturb()
		w.put(PipelineRuns, "a", "2")
		time.Sleep(staleTime - time.Second)
		if err := f.Ready(t.Context()); err != nil {
			t.Errorf("what begins again at once is told: %v", err)
		}
		time.Sleep(time.Minute)
		if err := f.Ready(t.Context()); err == nil {
			t.Error("what was is shown as if it were")
		}
		if got := s.got(); got[len(got)-1] != ": stale" {
			t.Errorf("those who watch are told %q", got)
		}
		w.set(func() { w.away = false })
		time.Sleep(2 * time.Minute)
		if err := f.Ready(t.Context()); err != nil {
			t.Error(err)
		}
		s.sees(w)
		if got := s.got(); !strings.HasPrefix(got[len(got)-1], ": ping") {
			t.Errorf("they are told %q", got)
		}
		s.close()
	})
}

func TestAClusterThatWasPutBackEndsTheFeed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(PipelineRuns, "a", "1")
		f := New(Config{NamespaceUID: "uid", Source: w, PollEvery: 2 * time.Second})
		done := make(chan error, 1)
		go func() { done <- f.Run(t.Context()) }()
		if err := f.Ready(t.Context()); err != nil {
			t.Fatal(err)
		}
		w.set(func() {
			w.version, w.oldest = 50, 50
			clear(w.objects[PipelineRuns])
			w.events = [kindCount][]kubelist.Event{}
		})
		w.forget()
		w.set(func() { w.oldest = 1 << 40 }) // what was is expired
		w.disturb()
		if err := <-done; !errors.Is(err, errBackwards) {
			t.Errorf("it ended with %v", err)
		}
	})
}

// rule: R253
func TestAnIdleStreamHasACommentEvery15Seconds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		f := start(t, w, "uid")
		s := open(t, f, "", nil)
		time.Sleep(61 * time.Second)
		if got := s.got(); len(got) != 5 || got[1] != ": ping" || got[4] != ": ping" {
			t.Errorf("got %q in a minute", got)
		}
		s.close()
	})
}
