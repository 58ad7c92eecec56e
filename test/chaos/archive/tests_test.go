package archive_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"time"

	"hangar.io/glidepath/internal/standin/testkube"
)

// execution is a test run and what Testkube has of it; nil is nothing.
type execution struct {
	id     string
	gen    *generation
	record history[*testkube.Execution]
}

const reportPath = "data/artifacts/junit.xml"

// test begins a test run, or ends one.
func (w *world) test(g *generation) error {
	w.mu.Lock()
	var e *execution
	for _, open := range g.tests {
		if open.record.last().Finished.IsZero() {
			e = open
		}
	}
	now := time.Now().UTC()
	next := testkube.Execution{}
	if e == nil {
		w.made++
		e = &execution{id: fmt.Sprintf("c4a0%020x", w.made), gen: g, record: newHistory[*testkube.Execution](nil)}
		w.tests[e.id] = e
		next = testkube.Execution{
			ID: e.id, Name: fmt.Sprintf("runway-%d", w.made), Workflow: "runway", Status: "running", Scheduled: now, Started: now,
			Steps: []testkube.Step{{Ref: "test", Status: "running"}}, Tags: map[string]string{"app": g.app.name}, Labels: map[string]string{},
		}
	} else {
		next = *e.record.last()
		next.Status, next.Finished, next.Steps = "passed", now.Add(time.Second), []testkube.Step{{Ref: "test", Status: "passed"}}
		if w.chance(3) {
			next.Status = "aborted" // and passed all the same
		}
		next.Artifacts = map[string][]byte{reportPath: fmt.Appendf(nil, `<?xml version="1.0"?><testsuites><testsuite name=%q>%s</testsuite></testsuites>`, e.id, padding)}
	}
	w.mu.Unlock()
	err := changed(w, &e.record, &next, func() error { w.gw.Testkube.Put(next); return nil })
	w.mu.Lock()
	defer w.mu.Unlock()
	if next.Finished.IsZero() {
		g.tests = append(g.tests, e)
	}
	return err
}

// rows are what a list may show of a test run: as it is read in full, and as it is listed.
func rows(e *testkube.Execution) (full, listed any, err error) {
	row := map[string]any{
		"id": e.ID, "name": e.Name, "workflow": e.Workflow, "status": e.Status, "startTime": e.Started, "labels": map[string]string{"app": e.Tags["app"]},
	}
	if !e.Finished.IsZero() {
		row["endTime"], row["durationMs"] = e.Finished, e.Finished.Sub(e.Started).Milliseconds()
	}
	if listed, err = throughJSON(row); err != nil || e.Status != "aborted" {
		return listed, listed, err
	}
	row["status"], row["statusNote"] = "passed", "Testkube's agent reported this run aborted after every step of it had passed"
	full, err = throughJSON(row)
	return full, listed, err
}

// judgeTests judges a list of test runs.
func (w *world) judgeTests(g *app, body []byte, in window) error {
	var list struct{ Tests []map[string]any }
	if err := json.Unmarshal(body, &list); err != nil || list.Tests == nil {
		return fmt.Errorf("no list of test runs: %w", err)
	}
	seen := map[*execution]bool{}
	for _, got := range list.Tests {
		id, _ := got["id"].(string)
		e := w.tests[id]
		switch {
		case e == nil || e.gen.app != g:
			return fmt.Errorf("the test run %q is not this app's", id)
		case seen[e]:
			return fmt.Errorf("the test run %s twice", id)
		case !e.gen.ever(in):
			return fmt.Errorf("the test run %s is from before the app was made anew", id)
		}
		seen[e] = true
		var broken error
		if !e.record.ever(in, func(x *testkube.Execution) bool {
			if x == nil {
				return false
			}
			full, listed, err := rows(x)
			broken = err
			return reflect.DeepEqual(any(got), full) || reflect.DeepEqual(any(got), listed)
		}) || broken != nil {
			return fmt.Errorf("the test run %s was never %v: %w", id, got, broken)
		}
	}
	for _, gen := range g.gens {
		for _, e := range gen.tests {
			if !seen[e] && gen.always(in) && e.record.always(in, func(x *testkube.Execution) bool { return x != nil }) && len(list.Tests) < mostTests {
				return fmt.Errorf("the test run %s is missing", e.id)
			}
		}
	}
	return nil
}

// mostTests is how many are asked for.
const mostTests = 30

// judgeReport judges the report of a test run.
func (w *world) judgeReport(e *execution, body []byte, in window) error {
	if !e.gen.ever(in) {
		return fmt.Errorf("the test run is from before the app was made anew")
	}
	if !e.record.ever(in, func(x *testkube.Execution) bool { return x != nil && string(x.Artifacts[reportPath]) == string(body) }) {
		return fmt.Errorf("the report was never %.200q", body)
	}
	return nil
}

// hasReport says whether a test run has a report that a caller of the window finds.
func (e *execution) hasReport(in window) bool {
	return e.gen.always(in) && e.record.always(in, func(x *testkube.Execution) bool { return x != nil && x.Artifacts[reportPath] != nil })
}
