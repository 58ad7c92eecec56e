package archive_test

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"
)

// question is a call, and how its answer is judged.
type question struct {
	op, path string
	// kept is how old an answer may be; 0 for one that is read for each call.
	kept time.Duration
	// known is how old what a first answer goes by may be: other calls had it read.
	known time.Duration
	// right judges a body, and absent says what the rules of a 404 are that may be answered, when the answer was read in a
	// window and the call made in another. Both are called with the world's lock held.
	right  func(body []byte, read, call window) error
	absent func(rule string, read, call window) bool
}

// How old answers are at most. Reading one takes up to fillTime, and waiting for another's reading may come before it.
const (
	listAge = time.Minute + 3*fillTime
	noAge   = 3 * fillTime // what is not kept may still be another's reading
	anyAge  = time.Hour
	// What namespaces there are is read every two seconds at most, for all lists of the fleet.
	censusAge = 2*time.Second + fillTime
)

const notFound, noLog = "GP-API-404", "GP-LOG-404"

// pick makes a question up.
func (w *world) pick(random *rand.Rand) question {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.apps[random.IntN(len(w.apps))]
	switch n := random.IntN(20); {
	case n < 3:
		return w.askList(a, w.hours(), []int{5, 40, 40, 1000}[random.IntN(4)], n == 0)
	case n < 5:
		return w.askFleet(a, w.hours(), []int{30, 30, 1000}[random.IntN(3)], n == 3)
	case n < 10:
		return w.askRun(w.pickRun(a, random))
	case n < 14:
		r := w.pickRun(a, random)
		for len(r.tasks) == 0 {
			r = w.pickRun(a, random)
		}
		return w.askLog(r.tasks[random.IntN(len(r.tasks))])
	case n < 16:
		return w.askExplanation(w.pickRun(a, random))
	case n < 18:
		return w.askTests(a)
	default:
		return w.askReport(a, random)
	}
}

// hours is how far back lists are asked for, which makes no difference here but that of a list that nobody has asked for: a
// list is another every half second.
func (w *world) hours() int { return 20 + int(time.Since(w.began)/(500*time.Millisecond))%700 }

// pickRun gives one that the archive is at, or any.
func (w *world) pickRun(a *app, random *rand.Rand) *run {
	g := a.now()
	if random.IntN(10) == 0 {
		g = a.gens[random.IntN(len(a.gens))]
	}
	if n := len(g.open); n > 0 && random.IntN(3) > 0 {
		return g.open[random.IntN(n)]
	}
	if len(g.runs) == 0 {
		return a.gens[0].runs[0]
	}
	if latest := 10; len(g.runs) > latest && random.IntN(2) == 0 {
		return g.runs[len(g.runs)-1-random.IntN(latest)]
	}
	return g.runs[random.IntN(len(g.runs))]
}

func (w *world) askList(a *app, hours, limit int, full bool) question {
	view, l := "summary", listing{apps: []*app{a}, limit: limit, full: full}
	if full {
		view = "full"
	}
	return question{
		op: "listRuns", path: fmt.Sprintf("/v1/apps/%s/runs?sinceHours=%d&limit=%d&view=%s", a.name, hours, limit, view), kept: listAge,
		right:  func(body []byte, read, call window) error { return l.judge(w, body, read, call) },
		absent: a.absent,
	}
}

// absent says whether an app may be none, while it is made anew.
func (a *app) absent(rule string, _, call window) bool {
	if rule != notFound {
		return false
	}
	for _, g := range a.gens {
		if g.always(call) {
			return false
		}
	}
	return true
}

func (w *world) askFleet(a *app, hours, limit int, all bool) question {
	path := fmt.Sprintf("/v1/runs?sinceHours=%d&limit=%d", hours, limit)
	l := listing{apps: w.apps, limit: limit, fleet: all}
	if !all {
		path, l.apps = path+"&app="+a.name, []*app{a}
	}
	return question{
		op: "listFleetRuns", path: path, kept: listAge, known: censusAge,
		right:  func(body []byte, read, call window) error { return l.judge(w, body, read, call) },
		absent: func(rule string, read, call window) bool { return !all && a.absent(rule, read, call) },
	}
}

func (r *run) path() string { return "/v1/apps/" + r.gen.app.name + "/runs/" + r.uid }

// absent says whether a run may not be found.
func (r *run) absent(rule string, read, call window) bool {
	return rule == notFound && (!r.gen.always(call) || !r.record.always(read, ended))
}

// old is an error for what is of an app that was made anew.
func (r *run) old(call window) error {
	if !r.gen.ever(call) {
		return fmt.Errorf("run %s is one of before %s was made anew", r.uid, r.gen.app.name)
	}
	return nil
}

func (w *world) askRun(r *run) question {
	q := question{op: "getRun", path: r.path(), kept: listAge, absent: r.absent}
	if r.settled {
		q.kept = anyAge
	}
	q.right = func(body []byte, read, call window) error {
		k, err := w.recognize(body)
		if err != nil {
			return err
		}
		if k.run != r || !k.got.full {
			return fmt.Errorf("another run, or not all of it: %.300s", body)
		}
		if err := r.old(call); err != nil {
			return err
		}
		return k.judge(read)
	}
	return q
}

func (w *world) askLog(t *task) question {
	q := question{op: "getRunLogs", path: t.run.path() + "/logs/" + t.name, kept: listAge}
	if t.run.settled {
		q.kept = anyAge
	}
	q.right = func(body []byte, read, call window) error {
		if err := t.run.old(call); err != nil {
			return err
		}
		return t.judgeLog(body, read)
	}
	q.absent = func(rule string, read, call window) bool {
		if rule == noLog {
			return t.log.ever(read, func(text []byte) bool { return text == nil })
		}
		return t.run.absent(rule, read, call) || (rule == notFound && !t.record.always(read, there))
	}
	return q
}

func (w *world) askExplanation(r *run) question {
	return question{
		op: "explainRun", path: r.path() + "/explain", kept: listAge, absent: r.absent,
		right: func(body []byte, read, call window) error {
			if err := r.old(call); err != nil {
				return err
			}
			return r.judgeExplanation(body, read)
		},
	}
}

func (w *world) askTests(a *app) question {
	return question{
		op: "listTests", path: fmt.Sprintf("/v1/apps/%s/tests?limit=%d", a.name, mostTests), absent: a.absent,
		right: func(body []byte, _, call window) error { return w.judgeTests(a, body, call) },
	}
}

func (w *world) askReport(a *app, random *rand.Rand) question {
	g := a.gens[random.IntN(len(a.gens))]
	if len(g.tests) == 0 {
		return w.askTests(a)
	}
	e := g.tests[random.IntN(len(g.tests))]
	return question{
		op: "getTestReport", path: "/v1/apps/" + a.name + "/tests/" + e.id + "/report",
		right:  func(body []byte, _, call window) error { return w.judgeReport(e, body, call) },
		absent: func(rule string, _, call window) bool { return rule == notFound && !e.hasReport(call) },
	}
}

// failures are the rules of calls that failed by what is behind the edge, by their status.
var failures = map[int]string{
	http.StatusBadGateway: "GP-API-502 GP-EDGE-502", http.StatusServiceUnavailable: "GP-API-503 GP-EDGE-503", http.StatusGatewayTimeout: "GP-EDGE-504",
}

// judge judges an answer. failed is the rule of a call that failed.
func (w *world) judge(q question, a answer) (failed string, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	call := window{a.sent, a.came}
	read := window{a.sent.Add(-q.kept), a.came}
	if a.status != http.StatusOK && q.kept > 0 {
		read.from = a.sent.Add(-noAge)
	}
	if first := w.first[q.path].Add(-q.known); read.from.Before(first) && q.kept != anyAge {
		read.from = first
	}
	switch a.status {
	case http.StatusOK:
		return "", q.right(a.body, read, call)
	case http.StatusNotFound:
		if !q.absent(a.rule, read, call) {
			return "", fmt.Errorf("not found by %s: %s", a.rule, a.body)
		}
		return "", nil
	}
	if rules := failures[a.status]; a.rule == "" || !strings.Contains(rules, a.rule) {
		return "", fmt.Errorf("answered %d: %.300s", a.status, a.body)
	}
	return a.rule, nil
}
