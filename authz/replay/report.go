package replay

import (
	"cmp"
	"slices"
)

// Report says what became of past calls.
type Report struct {
	// Lines is how many lines were read, Calls how many of them were audit
	// lines, Other how many were something else.
	Lines int `json:"lines"`
	Calls int `json:"calls"`
	Other int `json:"other"`
	// Judged is how many calls were decided again.
	Judged      int          `json:"judged"`
	Differences []Difference `json:"differences"`
	// Unknown are calls that might be decided otherwise, and nobody can tell.
	Unknown []Undecided `json:"unknown"`
	// Unaffected are calls that no right decided.
	Unaffected []Undecided `json:"unaffected"`
	// Malformed is how many lines could not be read; MalformedLines are the
	// first of them.
	Malformed      int         `json:"malformed"`
	MalformedLines []Malformed `json:"malformedLines,omitempty"`
	// Incomplete says that the report may lack differences for want of answers
	// or of room, and not because lines do not say enough.
	Incomplete bool `json:"incomplete"`
}

// Verdict is one decision.
type Verdict struct {
	Allowed bool `json:"allowed"`
	// Rule is that of a refusal.
	Rule string `json:"rule,omitempty"`
}

// Difference is a kind of call that would now be decided otherwise.
type Difference struct {
	Caller string `json:"caller"`
	Op     string `json:"op"`
	App    string `json:"app,omitempty"`
	// Delegated says that the calls named a person.
	Delegated bool    `json:"delegated,omitempty"`
	Was       Verdict `json:"was"`
	Now       Verdict `json:"now"`
	Calls     int     `json:"calls"`
	// First and Last are when the calls in the input were made.
	First string `json:"first,omitempty"`
	Last  string `json:"last,omitempty"`
}

// Undecided is a kind of call that was not decided again.
type Undecided struct {
	Why    string `json:"why"`
	Rule   string `json:"rule,omitempty"`
	Caller string `json:"caller,omitempty"`
	Op     string `json:"op,omitempty"`
	App    string `json:"app,omitempty"`
	Calls  int    `json:"calls"`
}

func newReport(t *Tally) *Report {
	r := &Report{
		Lines: t.lines, Calls: t.audit, Other: t.other, Malformed: t.malformed, MalformedLines: t.shown,
		Differences: []Difference{}, Unknown: []Undecided{}, Unaffected: []Undecided{},
	}
	if t.beyond > 0 {
		r.Incomplete = true
		r.Unknown = append(r.Unknown, Undecided{Why: whyBeyond, Calls: t.beyond})
	}
	return r
}

func (r *Report) add(k kind, c *calls, now Verdict, why string) {
	switch why {
	case "":
		r.Judged += c.count
		if now.Allowed != k.allowed {
			r.Differences = append(r.Differences, Difference{
				Caller: k.caller, Op: k.op, App: k.app, Delegated: k.delegated, Was: Verdict{k.allowed, k.rule}, Now: now,
				Calls: c.count, First: c.first, Last: c.last,
			})
		}
	case whyNoRight, whyNoOperation:
		r.Unaffected = append(r.Unaffected, Undecided{Why: why, Rule: k.rule, Calls: c.count})
	default:
		r.Incomplete = r.Incomplete || why == whyNoAnswer
		r.Unknown = append(r.Unknown, Undecided{Why: why, Rule: k.rule, Caller: k.caller, Op: k.op, App: k.app, Calls: c.count})
	}
}

// finish puts everything in an order that does not depend on chance, and adds up
// what is alike.
func (r *Report) finish() {
	slices.SortFunc(r.Differences, func(a, b Difference) int {
		return cmp.Or(cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Op, b.Op), cmp.Compare(a.App, b.App), cmp.Compare(a.Was.Rule, b.Was.Rule), cmp.Compare(a.First, b.First))
	})
	r.Unknown, r.Unaffected = merged(r.Unknown), merged(r.Unaffected)
}

func merged(list []Undecided) []Undecided {
	slices.SortFunc(list, func(a, b Undecided) int {
		return cmp.Or(cmp.Compare(a.Why, b.Why), cmp.Compare(a.Rule, b.Rule), cmp.Compare(a.Caller, b.Caller), cmp.Compare(a.Op, b.Op), cmp.Compare(a.App, b.App))
	})
	out := []Undecided{}
	for _, u := range list {
		if n := len(out); n > 0 {
			last := out[n-1]
			last.Calls = u.Calls
			if last == u {
				out[n-1].Calls += u.Calls
				continue
			}
		}
		out = append(out, u)
	}
	return out
}
