package chaos_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"

	"hangar.io/glidepath/internal/problem"
)

// judge says what was seen of a call, and what is wrong with it, if anything. A part that is away is
// never wrong of one call: how many may say so is for the phase. It is called with the lock held.
func (l *load) judge(v *performance, begun *phase, header http.Header, body []byte) (what, fault string) {
	switch took := v.ended.Sub(v.began); {
	case took > hung:
		return broken, fmt.Sprintf("it hung: status %d, %v", v.status, v.err)
	case v.err != nil && v.excused:
		return broken, ""
	case v.err != nil && v.status == http.StatusOK && (begun.cuts || l.current.cuts):
		return broken, ""
	case v.err != nil:
		return broken, fmt.Sprintf("an edge that was not touched failed after status %d: %v", v.status, v.err)
	case v.status == http.StatusOK:
		return served, l.judgeServed(v, body)
	}
	refusal, err := parse(v, header, body)
	if err != nil {
		return broken, fmt.Sprintf("status %d is no refusal of ours: %v: %.200s", v.status, err, body)
	}
	v.rule = refusal.Rule
	switch {
	case slices.Contains(v.part.refusals, refusal.Rule):
		return refused, ""
	case slices.Contains(away, refusal.Rule), slices.Contains(begun.rules, refusal.Rule), slices.Contains(l.current.rules, refusal.Rule):
		return refusal.Rule, ""
	}
	return broken, fmt.Sprintf("refused with %d %s: %s", v.status, refusal.Rule, refusal.Message)
}

func (l *load) judgeServed(v *performance, body []byte) string {
	if !v.part.due(v.began) {
		return fmt.Sprintf("WRONG ALLOW: %.200s", body)
	}
	if v.part.right != nil {
		if err := v.part.right(body); err != nil {
			return fmt.Sprintf("a wrong answer: %v", err)
		}
	}
	return ""
}

// parse holds a refusal to the shape that each one has.
func parse(v *performance, header http.Header, body []byte) (problem.Body, error) {
	var b problem.Body
	if err := json.Unmarshal(body, &b); err != nil {
		return b, err
	}
	rule, err := known(b.Rule)
	switch {
	case err != nil:
		return b, fmt.Errorf("%q: %w", b.Rule, err)
	case rule.Status != v.status:
		return b, fmt.Errorf("%s goes with status %d", b.Rule, rule.Status)
	case header.Get("Content-Type") != "application/json":
		return b, fmt.Errorf("a refusal of type %q", header.Get("Content-Type"))
	case b.Message == "":
		return b, fmt.Errorf("%s without a message", b.Rule)
	case header.Get("X-Glidepath-Trace-Id") != v.id:
		return b, fmt.Errorf("the trace is %q", header.Get("X-Glidepath-Trace-Id"))
	}
	return b, nil
}
