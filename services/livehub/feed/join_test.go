package feed

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/watch"

	"hangar.io/glidepath/internal/kubelist"
)

func TestAViewerThatComesBackGetsWhatItMissedAndNothingTwice(t *testing.T) {
	for name, elsewhere := range map[string]bool{"to the same replica": false, "to another": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				w.put(PipelineRuns, "a", "1")
				here := start(t, w, "uid")
				there := here
				if elsewhere {
					there = start(t, w, "uid")
				}
				s := open(t, here, "", nil)
				synctest.Wait()
				w.put(PipelineRuns, "b", "1")
				w.put(TaskRuns, "t", "1")
				synctest.Wait()
				id, state := s.close()
				for i := range 300 { // more than may gather for one that is slow
					w.put(PipelineRuns, "c", fmt.Sprint(i))
				}
				w.remove(PipelineRuns, "a")
				w.put(TaskRuns, "t", "2")
				synctest.Wait()
				again := open(t, there, id, state)
				synctest.Wait()
				w.put(TaskRuns, "t", "3")
				synctest.Wait()
				again.sees(w)
				if got := again.got(); len(got) != 303 || again.resets > 0 {
					t.Errorf("%d events, want the 303 that were missed: %.300q", len(got), got)
				}
				again.close()
			})
		})
	}
}

// held is a world whose watches bring nothing that happens after they began
// until they are let go.
type held struct {
	*world
	let chan struct{}
}

func (h held) Watch(ctx context.Context, kind Kind, from kubelist.WatchFrom) (Watch, error) {
	w, err := h.world.Watch(ctx, kind, from)
	if err != nil {
		return nil, err
	}
	return heldWatch{w, ctx, h.let}, nil
}

type heldWatch struct {
	Watch
	ctx context.Context //nolint:containedctx // that of the watch
	let chan struct{}
}

func (h heldWatch) Next() (kubelist.Event, error) {
	e, err := h.Watch.Next()
	if err == nil && e.Type != watch.Added && !e.InitialEventsEnd {
		select {
		case <-h.let:
		case <-h.ctx.Done():
		}
	}
	return e, err
}

func TestAViewerThatWasShownMoreElsewhereIsNotTakenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(PipelineRuns, "a", "1")
		h := held{world: w, let: make(chan struct{})}
		ahead, behind := start(t, w, "uid"), start(t, h, "uid")
		s := open(t, ahead, "", nil)
		synctest.Wait()
		w.put(PipelineRuns, "a", "2")
		w.put(PipelineRuns, "a", "3")
		w.remove(PipelineRuns, "a")
		synctest.Wait()
		id, state := s.close()
		again := open(t, behind, id, state)
		synctest.Wait()
		close(h.let)
		w.put(TaskRuns, "t", "1")
		synctest.Wait()
		again.sees(w)
		if got := again.got(); again.resets > 0 || len(got) != 1 || !strings.HasPrefix(got[0], `change {"type":"upsert","kind":"TaskRun"`) {
			t.Errorf("it got %q", got)
		}
		again.close()
	})
}

func TestAnIDThatLeadsNowhereIsAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put(PipelineRuns, "a", "1")
		f := start(t, w, "uid")
		good := open(t, f, "", nil)
		synctest.Wait()
		id, _ := good.close()
		tag := tagOf("uid")
		for name, tc := range map[string]struct{ id, reason string }{
			"nothing of ours":            {"…", "unknown"},
			"without sums":               {tag + "-101-101", "unknown"},
			"sums cut":                   {id[:len(id)-1], "unknown"},
			"more behind it":             {id + "-1", "unknown"},
			"sums in capitals":           {tag + "-101-101-" + strings.Repeat("A", 32), "unknown"},
			"a sign":                     {tag + "-+101-101-" + strings.Repeat("0", 32), "unknown"},
			"digits of another script":   {tag + "-١٠١-101-" + strings.Repeat("0", 32), "unknown"},
			"a line end":                 {id + "\n", "unknown"},
			"a NUL":                      {"\x00" + id, "unknown"},
			"a long one":                 {strings.Repeat("9", 32<<10), "unknown"},
			"sums that are made up":      {Position{{101, 7}, {101, 0}}.id(tag), "differs"},
			"as far as numbers go":       {Position{{1<<64 - 1, 0}, {1<<64 - 1, 0}}.id(tag), "expired"},
			"from nowhere":               {Position{}.id(tag), "expired"},
			"another form of a number":   {tag + "-0101-101", "unknown"},
			"a number too large":         {tag + "-99999999999999999999-1", "unknown"},
			"too little":                 {tag + "-101", "unknown"},
			"an event's of another API":  {"1761742812345678-3f2a9c01b7de", "unknown"},
			"the namespace's before":     {strings.Replace(id, tag, tagOf("uid before"), 1), "namespace"},
			"from before what is known":  {Position{{1, 0}, {1, 0}}.id(tag), "expired"},
			"from what has not been yet": {Position{{1 << 40, 0}, {101, 0}}.id(tag), "expired"},
		} {
			s := open(t, f, tc.id, folded{"PipelineRun/ghost": "{}"})
			synctest.Wait()
			if got := s.got(); len(got) != 2 || got[0] != `reset {"reason":"`+tc.reason+`"}` || !strings.HasPrefix(got[1], "snapshot ") {
				t.Errorf("%s: got %q", name, got)
			}
			s.sees(w)
			s.close()
		}
	})
}

// FuzzParseID: a viewer sends what it likes.
func FuzzParseID(f *testing.F) {
	f.Add(Position{{1, 1 << 63}, {1 << 63, 1}}.id(tagOf("uid")))
	f.Add("3f2a9c01--1")
	f.Fuzz(func(t *testing.T, id string) {
		tag, p, err := parseID(id)
		if err == nil && p.id(tag) != id {
			t.Errorf("%q is read as %s", id, p.id(tag))
		}
	})
}

// Viewers come, go and come back anywhere while things change and watches break.
func TestWhateverHappensAViewerKnowsInTheEndWhatTheClusterHas(t *testing.T) {
	for seed := range uint64(20) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld()
				random := rand.New(rand.NewPCG(seed, 1))
				replicas := []*Feed{start(t, w, "uid"), start(t, w, "uid")}
				type place struct {
					id    string
					state folded
				}
				var gone []place
				var watching []*screen
				for range 400 {
					kind, name := Kind(random.IntN(int(kindCount))), fmt.Sprintf("o%d", random.IntN(12))
					switch random.IntN(20) {
					case 0:
						at := place{}
						if len(gone) > 0 {
							at = gone[random.IntN(len(gone))]
						}
						watching = append(watching, open(t, replicas[random.IntN(2)], at.id, at.state))
					case 1:
						if len(watching) > 0 {
							i := random.IntN(len(watching))
							id, state := watching[i].close()
							gone = append(gone, place{id, maps.Clone(state)})
							watching = slices.Delete(watching, i, i+1)
						}
					case 2:
						w.disturb()
					case 3:
						if random.IntN(4) == 0 {
							w.forget()
						}
					case 4, 5, 6:
						w.remove(kind, name)
					case 7:
						time.Sleep(time.Duration(random.IntN(5000)) * time.Millisecond)
					case 8, 9:
						synctest.Wait()
					default:
						w.put(kind, name, fmt.Sprint(random.Int()))
					}
				}
				time.Sleep(2 * time.Minute)
				for _, s := range watching {
					s.sees(w)
					s.close()
				}
				for _, at := range gone {
					s := open(t, replicas[random.IntN(2)], at.id, at.state)
					synctest.Wait()
					s.sees(w)
					s.close()
				}
			})
		})
	}
}
