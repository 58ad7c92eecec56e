package feed

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/cache"
)

// memory is a log that replicas share.
type memory struct {
	mu      sync.Mutex
	entries [kindCount][]cache.Entry
	away    bool
}

func (m *memory) Append(kind Kind, e cache.Entry) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if last := len(m.entries[kind]) - 1; !m.away && (last < 0 || m.entries[kind][last].At < e.At) {
		m.entries[kind] = append(m.entries[kind], e)
	}
}

func (m *memory) Read(_ context.Context, kind Kind, after uint64) (all []cache.Entry, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.away {
		return nil, errors.New("away")
	}
	for _, e := range m.entries[kind] {
		if e.At <= after {
			continue
		}
		if e.Before > after || len(all) > 0 && e.Was != all[len(all)-1].Is {
			break
		}
		all, after = append(all, e), e.At
	}
	return all, nil
}

// drop takes away what is from a version to another.
func (m *memory) drop(from, to uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for kind := range m.entries {
		m.entries[kind] = slices.DeleteFunc(m.entries[kind], func(e cache.Entry) bool { return from <= e.At && e.At <= to })
	}
}

// notes counts how viewers went on.
type notes struct {
	mu    sync.Mutex
	count map[string]int
}

func (n *notes) add(how string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.count == nil {
		n.count = map[string]int{}
	}
	n.count[how]++
}

func (n *notes) expect(t *testing.T, how string, want int) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.count[how] != want || len(n.count) != 1 {
		t.Errorf("viewers went on by %v, want %d by %s", n.count, want, how)
	}
}

// left is a viewer that was on a replica and left, and changes that it missed.
func left(t *testing.T, w *world, missed int, with ...func(*Config)) (id string, state folded) {
	t.Helper()
	w.put(PipelineRuns, "a", "1")
	w.put(TaskRuns, "t", "1")
	f := start(t, w, "uid", with...)
	s := open(t, f, "", nil)
	synctest.Wait()
	w.put(PipelineRuns, "goes", "1")
	synctest.Wait()
	id, state = s.close()
	for i := range missed - 2 {
		if i%2 == 0 {
			w.put(PipelineRuns, fmt.Sprint("r", i%7), fmt.Sprint(i))
		} else {
			w.put(TaskRuns, fmt.Sprint("t", i%7), fmt.Sprint(i))
		}
		synctest.Wait()
	}
	w.remove(PipelineRuns, "goes")
	w.remove(TaskRuns, "t")
	synctest.Wait()
	return id, state
}

func TestAReplicaThatDidNotFollowTellsWhatHappenedBefore(t *testing.T) {
	for name, tc := range map[string]struct {
		missed   int
		log      bool
		away     func(w *world, m *memory)
		wantedBy string
	}{
		"by a watch":              {missed: 300, away: func(*world, *memory) {}, wantedBy: byPast},
		"two thousand by a watch": {missed: 2000, away: func(*world, *memory) {}, wantedBy: byPast},
		"by the log, as the cluster has forgotten":    {missed: 300, log: true, away: func(w *world, _ *memory) { w.set(func() { w.oldest = w.version - 2 }) }, wantedBy: byPast},
		"two thousand by the log":                     {missed: 2000, log: true, away: func(w *world, _ *memory) { w.set(func() { w.oldest = w.version - 2 }) }, wantedBy: byPast},
		"by the log, and then by a watch":             {missed: 300, log: true, away: func(_ *world, m *memory) { m.drop(250, 1000) }, wantedBy: byPast},
		"by a watch, as there is a gap in the log":    {missed: 300, log: true, away: func(_ *world, m *memory) { m.drop(104, 106) }, wantedBy: byPast},
		"by a watch, as the log is away":              {missed: 300, log: true, away: func(_ *world, m *memory) { m.away = true }, wantedBy: byPast},
		"not at all, as both have forgotten":          {missed: 300, log: true, away: func(w *world, m *memory) { m.drop(104, 106); w.forget() }, wantedBy: "expired"},
		"not at all, as no watch is granted any more": {missed: 300, away: func(w *world, _ *memory) { w.set(func() { w.forbidden = true }) }, wantedBy: "expired"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w, m, n := newWorld(), &memory{}, &notes{}
				with := func(c *Config) {
					if c.Resumed = n.add; tc.log {
						c.Log = m
					}
				}
				id, state := left(t, w, tc.missed, with)
				tc.away(w, m)
				there := start(t, w, "uid", with)
				s := open(t, there, id, state)
				time.Sleep(10 * time.Second)
				w.put(PipelineRuns, "later", "1")
				time.Sleep(3 * time.Second)
				s.sees(w)
				changes := 0
				for _, e := range s.got() {
					if strings.HasPrefix(e, "change") {
						changes++
					}
				}
				if want := tc.missed + 1; tc.wantedBy == byPast && (changes != want || s.resets > 0) {
					t.Errorf("%d changes and %d resets, want the %d it missed, and none", changes, s.resets, want)
				}
				n.expect(t, tc.wantedBy, 1)
				s.close()
			})
		})
	}
}

// What happened is sent when it is found, and what happens meanwhile as well:
// nobody waits for the API server to say that there is no more.
func TestNobodyWaitsForTheEndOfWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		id, state := left(t, w, 10)
		there := start(t, w, "uid")
		began := time.Now()
		s := open(t, there, id, state)
		synctest.Wait()
		s.sees(w)
		w.put(PipelineRuns, "later", "1")
		synctest.Wait()
		s.sees(w)
		if d := time.Since(began); d > 0 {
			t.Errorf("it took %s", d)
		}
		s.close()
	})
}

func TestManyWhoComeBackShareOneWatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), &notes{}
		id, state := left(t, w, 50)
		there := start(t, w, "uid", func(c *Config) { c.Resumed = n.add })
		before := w.counts().watches
		var all []*screen
		for range 100 {
			all = append(all, open(t, there, id, state))
		}
		time.Sleep(5 * time.Second)
		for _, s := range all {
			s.sees(w)
		}
		if got := w.counts(); got.watches != before+1 {
			t.Errorf("they cost %d watches", got.watches-before)
		}
		// So does one who comes when it is over.
		late := open(t, there, id, state)
		synctest.Wait()
		late.sees(w)
		if got := w.counts(); got.watches != before+1 || got.open != 2 { // one of each replica
			t.Errorf("later: %+v", got)
		}
		n.expect(t, byPast, 101)
		for _, s := range append(all, late) {
			s.close()
		}
		time.Sleep(pastKept + time.Second)
		there.mu.Lock()
		defer there.mu.Unlock()
		if there.back != nil {
			t.Error("it is kept for ever")
		}
	})
}

func TestAnAPIServerThatBreaksOffIsAskedAgainForWhatHappened(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), &notes{}
		id, state := left(t, w, 50)
		there := start(t, w, "uid", func(c *Config) { c.Resumed = n.add })
		w.set(func() { w.away = true })
		s := open(t, there, id, state)
		time.Sleep(3 * time.Second)
		w.set(func() { w.away = false })
		time.Sleep(time.Minute)
		s.sees(w)
		n.expect(t, byPast, 1)
		s.close()
	})
}

func TestWhatTakesTooLongToFindIsAReset(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), &notes{}
		id, state := left(t, w, 50)
		there := start(t, w, "uid", func(c *Config) { c.Resumed = n.add })
		w.set(func() { w.away = true })
		s := open(t, there, id, state)
		time.Sleep(pastTime + time.Second)
		s.sees(w)
		if got := s.got(); len(got) == 0 || got[0] != `reset {"reason":"expired"}` {
			t.Errorf("it got %.200q", got)
		}
		n.expect(t, "expired", 1)
		s.close()
	})
}

func TestMoreThanAPastMayHaveIsAReset(t *testing.T) {
	p := newPast(Position{{1, 0}, {1, 0}}, Position{{1 << 40, 0}, {1 << 40, 0}})
	for i := range uint64(pastCount) {
		if err := p.add(PipelineRuns, 0, Place{i + 2, 0}, []byte("x")); err != nil {
			t.Fatal(i, err)
		}
	}
	if err := p.add(PipelineRuns, 0, Place{pastCount + 2, 0}, []byte("x")); !errors.Is(err, errPastTooLong) {
		t.Errorf("one more: %v", err)
	}
	p = newPast(Position{{1, 0}, {1, 0}}, Position{{1 << 40, 0}, {1 << 40, 0}})
	if err := p.add(TaskRuns, 0, Place{2, 0}, make([]byte, pastBytes)); !errors.Is(err, errPastTooLong) {
		t.Errorf("one that is too large: %v", err)
	}
}
