package archive_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"hangar.io/glidepath/internal/standin/results"
)

// run is a PipelineRun and what the archive holds of it.
type run struct {
	gen               *generation
	uid, name, result string
	created, stored   time.Time
	settled           bool // it ended long ago
	record            history[*object]
	tasks             []*task
	// ahead are what is still to happen to it, each one after the other.
	ahead [][]func() error
}

// task is a TaskRun and what the archive holds of it.
type task struct {
	run       *run
	uid, name string
	stored    time.Time
	named     bool // it names its run, and does not have its uid
	record    history[*object]
	log       history[[]byte]
}

// changed has something take another's place, by do. It is called by one goroutine for one history.
func changed[T any](w *world, h *history[T], value T, do func() error) error {
	w.mu.Lock()
	h.begin(value)
	w.mu.Unlock()
	if err := do(); err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	h.done()
	return nil
}

// begin makes a run of which the archive holds nothing yet. Those of an event share a Result.
func (w *world) begin(g *generation, settled bool, event string, tasks int) *run {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.made++
	g.made++
	r := &run{gen: g, uid: uid(w.made, 0), name: fmt.Sprintf("build-%d", g.made), created: time.Now().Truncate(time.Second), settled: settled, record: newHistory[*object](nil)}
	if r.result = r.uid; event != "" {
		r.result = event
	}
	for i := range tasks {
		r.tasks = append(r.tasks, &task{
			run: r, uid: uid(w.made, i+1), name: fmt.Sprintf("%s-unit-%d", r.name, i), named: w.chance(5), record: newHistory[*object](nil), log: newHistory[[]byte](nil),
		})
	}
	w.runs[r.uid] = r
	g.runs = append(g.runs, r)
	return r
}

// uid is that of a run, or of one of its TaskRuns.
func uid(run, task int) string { return fmt.Sprintf("%08x-c4a0-4000-8000-%012x", run, task) }

// chance is true once in n times. It is called with the lock held.
func (w *world) chance(n int) bool { return w.rand.IntN(n) == 0 }

// store archives a version of a run. One that has no outcome goes on.
func (w *world) store(r *run, number, outcome int) error {
	o, err := r.object(number, outcome)
	if err != nil {
		return err
	}
	if r.stored.IsZero() {
		r.stored = time.Now()
	}
	return changed(w, &r.record, o, func() error { return w.archive(r, r.uid, "PipelineRun", o.value, r.stored) })
}

// store archives a version of a TaskRun.
func (t *task) store(w *world, number, outcome int) error {
	o, err := t.object(number, outcome)
	if err != nil {
		return err
	}
	if t.stored.IsZero() {
		t.stored = time.Now()
	}
	return changed(w, &t.record, o, func() error { return w.archive(t.run, t.uid, "TaskRun", o.value, t.stored) })
}

func (w *world) archive(r *run, uid, kind string, value []byte, stored time.Time) error {
	return w.gw.Results.PutRecord(results.Record{
		Parent: r.gen.app.namespace, Result: r.result, Name: uid, Type: "tekton.dev/v1." + kind, Value: value, Created: stored, Updated: time.Now(),
	})
}

// storeLog archives a version of a TaskRun's log.
func (t *task) storeLog(w *world, number, lines int) error {
	text := logText(t.uid, number, lines)
	return changed(w, &t.log, text, func() error {
		return w.gw.Results.ArchiveLog(t.run.gen.app.namespace, t.run.result, t.uid, text, time.Now())
	})
}

// whole archives a run that is whole from the first.
func (w *world) whole(r *run, outcome int) error {
	for _, t := range r.tasks {
		if err := errors.Join(t.store(w, 1, outcome), t.storeLog(w, 1, 20)); err != nil {
			return err
		}
	}
	return w.store(r, 1, outcome)
}

// forget removes a run and its TaskRuns, as the retention job does.
func (w *world) forget(r *run) error {
	remove := func(uid string) func() error {
		return func() error { w.gw.Results.DeleteRecord(r.gen.app.namespace, r.result, uid); return nil }
	}
	err := changed(w, &r.record, nil, remove(r.uid))
	for _, t := range r.tasks {
		err = errors.Join(err, changed(w, &t.record, nil, remove(t.uid)))
	}
	return err
}

// plan has a run and its TaskRuns be archived piece by piece, and the logs late.
func (w *world) plan(r *run, random *rand.Rand) {
	outcome := random.IntN(len(outcomes))
	r.ahead = [][]func() error{{
		func() error { return w.store(r, 1, goesOn) },
		func() error { return w.store(r, 2, outcome) },
	}}
	for i, t := range r.tasks {
		ends, lines := (outcome+i)%len(outcomes), 1+random.IntN(40)
		if random.IntN(20) == 0 {
			lines = 2000 // several pieces
		}
		r.ahead = append(r.ahead,
			[]func() error{func() error { return t.store(w, 1, goesOn) }, func() error { return t.store(w, 2, ends) }},
			[]func() error{func() error { return t.storeLog(w, 1, 1) }, func() error { return t.storeLog(w, 2, lines) }},
		)
		if random.IntN(4) == 0 {
			r.ahead[len(r.ahead)-1] = nil // it leaves none
		}
	}
	r.trim()
}

// next has the next thing happen to a run, and says whether it was the last one.
func (r *run) next(random *rand.Rand) (last bool, err error) {
	i := random.IntN(len(r.ahead))
	do := r.ahead[i][0]
	r.ahead[i] = r.ahead[i][1:]
	r.trim()
	return len(r.ahead) == 0, do()
}

func (r *run) trim() {
	r.ahead = slices.DeleteFunc(r.ahead, func(s []func() error) bool { return len(s) == 0 })
}
