package feed

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// One who makes ids up must not have those reset who come back at the same time.
func TestAPastThatNobodyCanTellKeepsNobodyFromTheirOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, n := newWorld(), &notes{}
		id, state := left(t, w, 50)
		there := start(t, w, "uid", func(c *Config) { c.Resumed = n.add })
		made := Position{{1, 7}, {1, 7}}.id(tagOf("uid"))
		var all []*screen
		for range 5 {
			all = append(all, open(t, there, made, nil), open(t, there, id, state))
		}
		time.Sleep(10 * time.Second)
		for _, s := range all {
			s.sees(w)
			s.close()
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		if n.count[byPast] != 5 || n.count[string(ResetExpired)] != 5 {
			t.Errorf("viewers went on by %v", n.count)
		}
	})
}

// slow is a world that takes its time to say how far it is.
type slow struct {
	*world

	asked atomic.Int64
}

func (s *slow) Latest(ctx context.Context, kind Kind) (string, error) {
	s.asked.Add(1)
	<-time.After(time.Second)
	return s.world.Latest(ctx, kind)
}

// Ids of what has not been are as many as anybody likes, and the cluster is asked
// about them.
func TestIDsThatAreMadeUpCostTheClusterFewQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &slow{world: newWorld()}
		w.put(PipelineRuns, "a", "1")
		f := start(t, w, "uid")
		began := time.Now()
		var all sync.WaitGroup
		for i := range uint64(100) {
			all.Go(func() {
				v, err := f.Join(t.Context(), Position{{1<<50 + i, 0}, {101, 0}}.id(tagOf("uid")))
				if err != nil || len(v.First()) != 2 {
					t.Errorf("no reset, %v", err)
				}
			})
		}
		all.Wait()
		if n, took := w.asked.Load(), time.Since(began); n > 2 || took > 2*time.Second {
			t.Errorf("%d questions in %s", n, took)
		}
	})
}
