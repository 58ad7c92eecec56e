package runs

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"hangar.io/glidepath/services/runs/results"
)

// storing puts the runs of an archive into its order: that of storing.
func (w *world) storing(when func(results.Record) time.Time) {
	for i := range w.archive.runs {
		w.archive.runs[i].Stored = when(w.archive.runs[i])
	}
	slices.SortStableFunc(w.archive.runs, func(a, b results.Record) int { return b.Stored.Compare(a.Stored) })
}

func TestTheNewestRunsAreGivenWheneverTheyWereStored(t *testing.T) {
	at := func(r results.Record) time.Time { return r.Created.Add(time.Second) }
	for name, stored := range map[string]func(now time.Time) func(results.Record) time.Time{
		"soon after they were made": func(time.Time) func(results.Record) time.Time { return at },
		"an old one days late": func(now time.Time) func(results.Record) time.Time {
			return func(r results.Record) time.Time {
				if r.UID == uidOf(20) {
					return now
				}
				return at(r)
			}
		},
		"all at once": func(now time.Time) func(results.Record) time.Time {
			return func(results.Record) time.Time { return now }
		},
		"restored, the oldest last": func(now time.Time) func(results.Record) time.Time {
			return func(r results.Record) time.Time { return now.Add(now.Sub(r.Created)) }
		},
		"nobody knows when": func(time.Time) func(results.Record) time.Time {
			return func(results.Record) time.Time { return time.Time{} }
		},
		"by a clock that is behind the cluster's": func(time.Time) func(results.Record) time.Time {
			return func(r results.Record) time.Time { return r.Created.Add(-50 * time.Second).Truncate(time.Minute) }
		},
	} {
		for _, query := range []string{"?limit=5", "?limit=5&view=full"} {
			t.Run(name+query, func(t *testing.T) {
				w := newWorld(t)
				for i := range 20 {
					w.archive.runs = append(w.archive.runs, pipelineRun(shopNamespace, i+1, w.now.Add(-time.Duration(i)*20*time.Second)))
				}
				w.storing(stored(w.now))
				if got := numbers(w.shop(query)); !slices.Equal(got, []int{1, 2, 3, 4, 5}) {
					t.Errorf("got %v", got)
				}
			})
		}
	}
}

// However an archive came to what it holds, a list is that of its newest runs.
func TestAListIsTheNewestOfAnyArchive(t *testing.T) {
	for seed := range uint64(40) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			chance := rand.New(rand.NewPCG(seed, 0))
			w := newWorld(t)
			all := 1 + chance.IntN(60)
			for i := range all {
				made := w.now.Add(-time.Duration(chance.IntN(3600)) * time.Second)
				w.archive.runs = append(w.archive.runs, pipelineRun(shopNamespace, i+1, made))
			}
			want := slices.Clone(w.archive.runs)
			slices.SortFunc(want, func(a, b results.Record) int {
				if c := b.Created.Compare(a.Created); c != 0 {
					return c
				}
				return slices.Compare([]byte(a.UID), []byte(b.UID))
			})
			late := time.Duration(1+chance.IntN(3600)) * time.Second
			w.storing(func(r results.Record) time.Time { return r.Created.Add(time.Duration(chance.Int64N(int64(late)))) })
			limit := 1 + chance.IntN(all)
			got := w.shop(fmt.Sprint("?limit=", limit))
			if len(got) != limit {
				t.Fatalf("%d runs, want %d", len(got), limit)
			}
			for i, r := range got {
				if r["result"] != want[i].UID {
					t.Errorf("run %d of %d is %s, want %s", i, limit, r["result"], want[i].UID)
				}
			}
		})
	}
}
