package runs

import (
	"encoding/base64"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/problem"
)

// noise is text that nothing makes much shorter.
func noise(seed, size int) string {
	b := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(seed), byte(seed >> 8)}).Read(b) // never fails
	return base64.StdEncoding.EncodeToString(b)
}

// noisy is a world with runs of a size, which have a TaskRun of that size each.
func noisy(t *testing.T, runs, size int) *world {
	w := newWorld(t)
	for n := range runs {
		at := w.now.Add(-time.Duration(n+1) * time.Hour)
		w.archive.runs = append(w.archive.runs, pipelineRun(shopNamespace, n+1, at, annotated(noise(n, size))))
		w.archive.tasks = append(w.archive.tasks, taskRun(shopNamespace, n+1, 1, at.Add(time.Second), annotated(noise(n+500, size))))
	}
	return w
}

// What does not fit into memory is refused before a byte of it is sent, and everybody
// who may ask again knows it for as long as a list is kept.
func TestAListThatDoesNotFitIntoMemoryIsRefused(t *testing.T) {
	w := noisy(t, 20, 16<<10)
	w.server.lists = newBudget(512<<10, 256<<10)
	got := w.get(fullAll, about("listRuns"))
	w.refused(got, problem.SourceFailed)
	if !strings.Contains(got.Body.String(), "limit") {
		t.Errorf("it does not say what to do: %s", got.Body)
	}
	if n := w.reads(func() { w.refused(w.get(fullAll, about("listRuns")), problem.SourceFailed) }); n != 0 {
		t.Errorf("it is read again, in %d requests", n)
	}
	if list := w.shop("?view=full&limit=4"); len(list) != 4 {
		t.Errorf("of fewer there are %d", len(list))
	}
	if list := w.shop(""); len(list) != 20 {
		t.Errorf("of summaries there are %d", len(list))
	}
	w.allBack()
}

// allBack fails the test unless nothing is held.
func (w *world) allBack() {
	w.t.Helper()
	for name, b := range map[string]*budget{"lists": w.server.lists, "runs": w.server.runs, "warming": w.server.warming} {
		if !b.all.TryAcquire(b.most) {
			w.t.Errorf("of the budget of %s something is held", name)
			continue
		}
		b.all.Release(b.most)
	}
}

func TestOnlyWhatIsShownCountsAgainstTheBudget(t *testing.T) {
	w := noisy(t, 30, 16<<10)
	w.server.lists = newBudget(256<<10, 256<<10)
	slices.Reverse(w.archive.runs) // each takes the place of another
	if list := w.shop("?view=full&limit=2&sinceHours=720"); len(list) != 2 {
		t.Errorf("there are %d", len(list))
	}
	w.allBack()
}

func TestAReadWaitsForNoBytesOfOthers(t *testing.T) {
	b := newBudget(3000, 2000)
	one, other := b.hold(), b.hold()
	raw := []byte(noise(1, 1000)) // about 1.0 to 1.4 kB, packed
	first, err := one.pack(raw)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := one.pack(raw); !errors.Is(err, answer.ErrTooLarge) {
		t.Errorf("more than one may hold: %v", err)
	}
	if _, err := other.pack(raw); err != nil {
		t.Fatal(err)
	}
	third := b.hold()
	if _, err := third.pack(raw); !errors.Is(err, cache.ErrBusy) {
		t.Errorf("more than all may hold: %v", err)
	}
	one.drop(first)
	if _, err := third.pack(raw); err != nil {
		t.Errorf("after another gave its own back: %v", err)
	}
	for _, h := range []*holding{one, other, third} {
		h.end()
	}
	if !b.all.TryAcquire(3000) {
		t.Error("something is held")
	}
}

// rule: R048
func TestWarmingTakesNobodysTurn(t *testing.T) {
	w := fleet(t)
	archive := w.slowly()
	var warming sync.WaitGroup
	warming.Go(w.warmUp)
	<-archive.began
	var done []func()
	for i := range heavyReads {
		d, err := w.server.heavy.begin(t.Context(), fmt.Sprint(i), 0)
		if err != nil {
			t.Fatalf("turn %d: %v", i, err)
		}
		done = append(done, d)
	}
	close(archive.gate)
	warming.Wait() // though all turns are taken
	for _, d := range done {
		d()
	}
	if n := w.reads(func() { w.body(oneList, ""); w.body(oneRun, "") }); n != 0 {
		t.Errorf("the first calls make %d requests", n)
	}
	w.allBack()
}

func TestAnAppThatIsTooLargeToBeWarmedHasItsListWarmed(t *testing.T) {
	w := noisy(t, 20, 16<<10)
	w.server.warming = newBudget(256<<10, 256<<10)
	w.warmUp()
	if n := w.reads(func() { w.body(oneList, "") }); n != 0 {
		t.Errorf("the list makes %d requests", n)
	}
	if got := w.get(oneRun, about("getRun")); got.Code != http.StatusOK {
		t.Errorf("a run: %d %s", got.Code, got.Body)
	}
	w.allBack()
}
