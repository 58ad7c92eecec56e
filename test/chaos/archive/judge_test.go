package archive_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"time"
)

// row is a run in an answer.
type row struct {
	fields      map[string]any // what every list shows
	namespace   string
	app         string
	pipelineRun any
	taskRuns    []any
	full        bool
}

func readRow(raw []byte) (row, error) {
	var r row
	if err := json.Unmarshal(raw, &r.fields); err != nil {
		return r, fmt.Errorf("a run: %w", err)
	}
	take := func(name string) any {
		v := r.fields[name]
		delete(r.fields, name)
		return v
	}
	_, r.full = r.fields["pipelineRun"]
	r.pipelineRun = take("pipelineRun")
	r.namespace, _ = take("namespace").(string)
	r.app, _ = take("app").(string)
	r.taskRuns, _ = take("taskRuns").([]any)
	return r, nil
}

func (r row) result() string { id, _ := r.fields["result"].(string); return id }

// known is a run as it was answered, and at which version it and its TaskRuns are so.
type known struct {
	run     *run // nil for one that nobody archived here
	got     row
	version int
	tasks   map[*task]int
}

// recognize says what an answer shows of a run. The same is answered again and again, and looked at once.
func (w *world) recognize(raw []byte) (*known, error) {
	if k := w.known[string(raw)]; k != nil {
		return k, nil
	}
	got, err := readRow(raw)
	if err != nil {
		return nil, err
	}
	k := &known{run: w.runs[got.result()], got: got, tasks: map[*task]int{}}
	if r := k.run; r != nil {
		k.version = r.record.find(func(o *object) bool {
			return ended(o) && reflect.DeepEqual(o.row, got.fields) && (!got.full || reflect.DeepEqual(o.shown, got.pipelineRun))
		})
		if k.version < 0 {
			return nil, fmt.Errorf("run %s was never %v %.300v", r.uid, got.fields, got.pipelineRun)
		}
		if err := k.recognizeTasks(got.taskRuns); err != nil {
			return nil, err
		}
	}
	k.got.pipelineRun, k.got.taskRuns = nil, nil
	const most = 5000
	if len(w.known) >= most {
		clear(w.known)
	}
	w.known[string(raw)] = k
	return k, nil
}

func (k *known) recognizeTasks(all []any) error {
	last := ""
	for _, shown := range all {
		o, _ := shown.(map[string]any)
		meta, _ := o["metadata"].(map[string]any)
		id, _ := meta["uid"].(string)
		t := k.run.task(id)
		if t == nil {
			return fmt.Errorf("run %s has a TaskRun %q", k.run.uid, id)
		}
		if t.name <= last { // they were made in the same second
			return fmt.Errorf("run %s has %s behind %s", k.run.uid, t.name, last)
		}
		last = t.name
		if k.tasks[t] = t.record.find(func(o *object) bool { return o != nil && reflect.DeepEqual(o.shown, shown) }); k.tasks[t] < 0 {
			return fmt.Errorf("TaskRun %s was never %.300v", id, shown)
		}
	}
	return nil
}

// judge judges a run as it is answered.
func (k *known) judge(in window) error {
	if !k.run.record[k.version].in(in) {
		return fmt.Errorf("run %s was not at version %d", k.run.uid, k.version)
	}
	for t, version := range k.tasks {
		if !t.record[version].in(in) {
			return fmt.Errorf("TaskRun %s was not at version %d", t.uid, version)
		}
	}
	for _, t := range k.run.tasks {
		if _, seen := k.tasks[t]; k.got.full && !seen && t.record.always(in, there) {
			return fmt.Errorf("run %s lacks its TaskRun %s", k.run.uid, t.name)
		}
	}
	return nil
}

func (r *run) task(uid string) *task {
	for _, t := range r.tasks {
		if t.uid == uid {
			return t
		}
	}
	return nil
}

// listing is a list of runs that was asked for.
type listing struct {
	apps  []*app
	full  bool
	fleet bool // of the whole fleet, others' runs among them
	limit int
}

// judge judges a list. read is when it was read, and call when it was asked for: whose namespace it is about is decided with
// each call, and for a fleet with each reading.
func (l listing) judge(w *world, body []byte, read, call window) error {
	var list struct{ Runs []json.RawMessage }
	if err := json.Unmarshal(body, &list); err != nil || list.Runs == nil {
		return fmt.Errorf("no list of runs: %w", err)
	}
	if len(list.Runs) > l.limit {
		return fmt.Errorf("%d runs, more than %d", len(list.Runs), l.limit)
	}
	seen, last := map[*run]bool{}, ""
	oldest := time.Time{}
	for _, raw := range list.Runs {
		k, err := w.recognize(raw)
		if err != nil {
			return err
		}
		created, _ := k.got.fields["createdAt"].(string)
		if last != "" && created > last {
			return fmt.Errorf("a run from %s behind one from %s", created, last)
		}
		last = created
		if oldest, err = time.Parse(time.RFC3339, created); err != nil {
			return fmt.Errorf("a run was made at %q", created)
		}
		if k.run == nil && l.fleet && w.others[k.got.result()] == string(raw) {
			continue
		}
		if k.run == nil || seen[k.run] || k.got.full != l.full {
			return fmt.Errorf("a run nobody archived, or one twice, or without what it is to have: %.300s", raw)
		}
		seen[k.run] = true
		if err := errors.Join(k.judge(read), l.judgePlace(k.run, k.got, read, call)); err != nil {
			return err
		}
	}
	return l.judgeMissing(seen, len(list.Runs) == l.limit, oldest, read, call)
}

// judgePlace judges whose a run is.
func (l listing) judgePlace(r *run, got row, read, call window) error {
	visible := r.gen.ever(call)
	if l.fleet {
		visible = r.gen.inFleet(read)
	}
	if !visible {
		return fmt.Errorf("run %s is one of before %s was made anew", r.uid, r.gen.app.name)
	}
	if got.namespace != "" && (got.namespace != r.gen.app.namespace || got.app != r.gen.app.name) {
		return fmt.Errorf("run %s is said to be of %s in %s", r.uid, got.app, got.namespace)
	}
	return nil
}

// judgeMissing says which runs had to be in a list and are not. One that has as many as it may lacks none that is younger than
// its last one.
func (l listing) judgeMissing(seen map[*run]bool, fullUp bool, oldest time.Time, read, call window) error {
	for _, a := range l.apps {
		for _, g := range a.gens {
			must := g.always(call) && !g.known.After(read.to)
			if l.fleet {
				must = g.mustInFleet(read)
			}
			for _, r := range g.runs {
				if must && !seen[r] && r.record.always(read, ended) && (!fullUp || r.created.After(oldest)) {
					return fmt.Errorf("run %s, from %s, is missing among %d down to %s", r.uid, stamp(r.created), len(seen), stamp(oldest))
				}
			}
		}
	}
	return nil
}

// judgeLog judges a log.
func (t *task) judgeLog(body []byte, in window) error {
	if !t.log.ever(in, func(text []byte) bool { return text != nil && served(text) == string(body) }) {
		return fmt.Errorf("the log of %s was never %.100q of %d bytes", t.uid, body, len(body))
	}
	return nil
}

// judgeExplanation judges why a run failed.
func (r *run) judgeExplanation(body []byte, in window) error {
	var got struct {
		Result   string
		Failures []struct{ TaskRun, Task, Step, Evidence, Log string }
	}
	if err := json.Unmarshal(body, &got); err != nil || got.Result != r.uid || got.Failures == nil {
		return fmt.Errorf("no explanation of %s: %.200s: %w", r.uid, body, err)
	}
	seen := map[string]bool{}
	for _, f := range got.Failures {
		var of *task
		for _, t := range r.tasks {
			if t.name == f.TaskRun {
				of = t
			}
		}
		if of == nil || seen[f.TaskRun] || !of.record.ever(in, failed) {
			return fmt.Errorf("run %s fails by %+v", r.uid, f)
		}
		seen[f.TaskRun] = true
		if !of.log.ever(in, func(text []byte) bool { return explains(of, f.Log, f.Evidence, text) }) {
			return fmt.Errorf("TaskRun %s fails by %+v", of.uid, f)
		}
	}
	for _, t := range r.tasks {
		if !seen[t.name] && t.record.always(in, failed) {
			return fmt.Errorf("run %s does not fail by %s", r.uid, t.name)
		}
	}
	return nil
}

// explains says whether evidence is out of a log, or out of the TaskRun's message where there is none.
func explains(t *task, log, evidence string, text []byte) bool {
	if text == nil {
		return log == "missing" && strings.Contains(evidence, t.uid+" is at version")
	}
	first, _, _ := strings.Cut(string(text), " line")
	return log == "archived" && strings.Contains(evidence, strings.TrimPrefix(first, "[test] "))
}
