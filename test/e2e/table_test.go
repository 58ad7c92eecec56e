package e2e_test

import (
	"cmp"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/devenv"
)

// callerTable is one table of testdata/callers.txt.
type callerTable struct {
	title   string
	about   string // the app; empty for the whole fleet
	columns []string
	rows    []callerRow
}

type callerRow struct {
	op    string
	cells []string
}

var wideGap = regexp.MustCompile(` {2,}`)

// readCallers reads testdata/callers.txt: its tables, the one of calls first.
func readCallers(t *testing.T) []callerTable {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "callers.txt"))
	if err != nil {
		t.Fatal(err)
	}
	var out []callerTable
	for text := range strings.Lines(string(raw)) {
		text = strings.TrimSpace(text)
		title, isTitle := strings.CutPrefix(text, "## ")
		about, isAbout := strings.CutPrefix(text, "about: ")
		switch {
		case isTitle:
			out = append(out, callerTable{title: title})
		case isAbout:
			out[len(out)-1].about = about
		case text == "" || text[0] == '#':
		default:
			last := &out[len(out)-1]
			fields := wideGap.Split(text, -1)
			if last.columns == nil {
				last.columns = fields[1:]
				continue
			}
			if len(fields) != len(last.columns)+1 {
				t.Fatalf("%s: the line has %d cells, not %d: %s", last.title, len(fields)-1, len(last.columns), text)
			}
			last.rows = append(last.rows, callerRow{op: fields[0], cells: fields[1:]})
		}
	}
	return out
}

// cell is one call of the table, made.
type cell struct {
	where, op, app string
	kind           kind
	want           outcome
	allowed        bool
	got            answer
}

// outcome is a status and, for a refusal, its rule.
type outcome struct {
	status int
	rule   string
}

func parseOutcome(t *testing.T, text string) outcome {
	t.Helper()
	status, rule, refusal := strings.Cut(text, " ")
	n, err := strconv.Atoi(status)
	if err != nil || refusal != (n >= 400) {
		t.Fatalf("%q is no status, with a rule where it is a refusal", text)
	}
	if refusal {
		rule = "GP-" + rule
	}
	return outcome{n, rule}
}

// rule: R005, R073, R077, R079, R081, R084, R122, R123, R124, R215, R216, R266, R388, R389, R390, R391, R066, R067, R069
func TestEveryOperationForEveryKindOfCaller(t *testing.T) {
	tables := readCallers(t)
	all, used := kinds(t), map[string]bool{}
	var cells []*cell
	for _, table := range tables[1:] {
		for i, name := range table.columns {
			k, known := all[name]
			if !known {
				t.Fatalf("%s: there is no kind of caller %q", table.title, name)
			}
			used[name] = true
			for _, row := range table.rows {
				cells = append(cells, table.call(t, tables[0], row.op, name, k, row.cells[i]))
			}
		}
	}
	for name := range all {
		if !used[name] {
			t.Errorf("the kind of caller %q is in no table", name)
		}
	}
	lines, reached := map[string][]line{}, map[string]int{}
	answers := map[*devenv.Gateway][]answer{}
	for _, c := range cells {
		at := cmp.Or(c.kind.at, gw)
		answers[at] = append(answers[at], c.got)
	}
	for g, of := range answers {
		maps.Copy(lines, linesOf(t, g, of))
	}
	for _, r := range planned.Requests() {
		reached[traceOf(r.Header.Get("Traceparent"))]++
	}
	for _, c := range cells {
		c.check(t, lines, reached)
	}
	t.Logf("%d calls", len(cells))
}

// The table has each operation of the contract in every table about an app, and
// each about the fleet in those about the fleet.
func TestTheTableOfCallersIsWhole(t *testing.T) {
	var all, fleet []string
	for _, op := range api.Operations() {
		all = append(all, op.ID)
		if op.Scope == api.ScopeFleet {
			fleet = append(fleet, op.ID)
		}
	}
	slices.Sort(all)
	slices.Sort(fleet)
	for i, table := range readCallers(t) {
		var ops []string
		for _, row := range table.rows {
			ops = append(ops, row.op)
		}
		slices.Sort(ops)
		want := all
		if i > 0 && table.about == "" {
			want = fleet
		}
		if !slices.Equal(ops, want) {
			t.Errorf("%s has the operations %v, not %v", table.title, ops, want)
		}
	}
}

// call makes the call of one cell.
func (table callerTable) call(t *testing.T, calls callerTable, op, name string, k kind, want string) *cell {
	t.Helper()
	i := slices.IndexFunc(calls.rows, func(r callerRow) bool { return r.op == op })
	if i < 0 {
		t.Fatalf("%s has no call", op)
	}
	o, known := api.Lookup(op)
	if !known {
		t.Fatalf("%s is no operation", op)
	}
	method, path, _ := strings.Cut(calls.rows[i].cells[0], " ")
	c := &cell{where: table.title + ": " + name + ", " + op, op: op, kind: k, allowed: want == "ok"}
	switch {
	case strings.Contains(path, "APP"):
		c.app = table.about
		path = strings.ReplaceAll(path, "APP", table.about)
	case o.Scope == api.ScopeFleet && table.about != "":
		c.app = table.about
		path += "?app=" + table.about
	}
	switch {
	case !c.allowed:
		c.want = parseOutcome(t, want)
	case o.Planned: // the recorder answers
		c.want = outcome{status: 200}
	default:
		c.want = parseOutcome(t, calls.rows[i].cells[1])
	}
	c.got = serviceOf(k.at).send(t, o.Stream, method, path, k.sends...)
	return c
}

// check holds the answer, the audit line and what reached the recorder to the
// cell.
func (c *cell) check(t *testing.T, lines map[string][]line, reached map[string]int) {
	t.Helper()
	rule := ""
	if c.got.status >= 400 {
		rule = c.got.problem(t).Rule
	}
	if got := (outcome{c.got.status, rule}); got != c.want {
		t.Errorf("%s: got %v, want %v: %.200s", c.where, got, c.want, c.got.body)
	}
	o, _ := api.Lookup(c.op)
	arrivals := 0
	if c.allowed && o.Planned {
		arrivals = 1
	}
	if n := reached[c.got.traceID()]; n != arrivals {
		t.Errorf("%s: %d requests reached the backend, want %d", c.where, n, arrivals)
	}
	found := lines[c.got.traceID()]
	if len(found) != 1 {
		t.Errorf("%s: %d audit lines", c.where, len(found))
		return
	}
	want := line{
		"op": c.op, "tier": string(o.Tier), "method": o.Method, "decision": "deny", "status": float64(c.want.status),
		"caller": orNil(c.kind.caller), "onBehalfOf": orNil(c.kind.person), "rule": orNil(c.want.rule),
	}
	if c.allowed {
		want["decision"] = "allow"
	}
	if c.kind.caller != "" {
		want["app"] = orNil(c.app)
	}
	for key, w := range want {
		if g := found[0][key]; g != w {
			t.Errorf("%s: the audit line's %s is %v, want %v", c.where, key, g, w)
		}
	}
}

// orNil is nil for what is absent.
func orNil(s string) any {
	if s == "" {
		return nil
	}
	return s
}

// traceOf gives the trace id of a traceparent.
func traceOf(traceparent string) string {
	parts := strings.Split(traceparent, "-")
	if len(parts) != 4 {
		return ""
	}
	return parts[1]
}
