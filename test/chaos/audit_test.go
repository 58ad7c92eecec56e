package chaos_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
)

// line is what an audit line says that is of use here.
type line struct {
	TraceID, Op, App, Caller, Decision, Rule string
	Status                                   int
}

// audited wants one line for each call that reached an edge, saying what its caller was told, and no allow in any line that
// is not due.
func (w *world) audited(t *testing.T) {
	t.Helper()
	for i, e := range w.gw.Edges {
		eventually(t, "the audit lines of all calls", func() error {
			lines, err := auditLines(e.Envoy.AccessLog)
			if err != nil {
				return err
			}
			return w.load.compare(i, lines)
		})
	}
}

func auditLines(path string) (map[string][]line, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	lines := map[string][]line{}
	s := bufio.NewScanner(f)
	s.Buffer(nil, 1<<20)
	for s.Scan() {
		var l line
		if err := json.Unmarshal(s.Bytes(), &l); err != nil {
			return nil, fmt.Errorf("an audit line is no JSON object: %w: %s", err, s.Bytes())
		}
		lines[l.TraceID] = append(lines[l.TraceID], l)
	}
	return lines, s.Err()
}

// compare returns an error for the first call whose lines are wrong. Calls of an edge whose Envoy was killed may have lost theirs.
func (l *load) compare(edge int, lines map[string][]line) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, v := range l.calls {
		if v.edge != edge || v.ended.IsZero() {
			continue
		}
		of := lines[id]
		if len(of) > 1 || (len(of) == 0 && !v.excused) {
			return fmt.Errorf("%d lines of %s (trace %s, status %d, ended %s)", len(of), v.part.name, id, v.status, v.ended)
		}
		if len(of) == 0 {
			continue
		}
		if !v.mayBeAllowed(of[0]) { // whatever its caller got to see of the answer
			return fmt.Errorf("an allow that is not due to %s, in the line of %s (trace %s): %+v", v.part.user, v.part.name, id, of[0])
		}
		if v.err != nil {
			continue
		}
		if err := v.agrees(of[0]); err != nil {
			return fmt.Errorf("the line of %s (trace %s): %w: %+v", v.part.name, id, err, of[0])
		}
	}
	return nobodys(lines, l.calls)
}

// nobodys is an error for an allow in a line that is of no call of the load. Who waits for an edge to start asks who they are.
func nobodys(lines map[string][]line, calls map[string]*performance) error {
	for id, of := range lines {
		for _, l := range of {
			if calls[id] == nil && l.Decision == "allow" && l.Op != "whoami" {
				return fmt.Errorf("an allow of a call that nobody made (trace %s): %+v", id, l)
			}
		}
	}
	return nil
}

func (v *performance) mayBeAllowed(l line) bool {
	return l.Decision != "allow" || (v.part.due(v.began) && l.Caller == v.part.user && l.App == v.part.app)
}

func (v *performance) agrees(l line) error {
	switch {
	case l.Status != v.status:
		return fmt.Errorf("its caller got status %d", v.status)
	case l.Rule != v.rule:
		return fmt.Errorf("its caller got rule %q", v.rule)
	case l.Op != v.part.op:
		return fmt.Errorf("it was %s", v.part.op)
	case v.status == http.StatusOK && l.Decision != "allow":
		return fmt.Errorf("served without an allow")
	}
	return nil
}

func containsLine(text, want string) bool {
	for got := range strings.SplitSeq(text, "\n") {
		if strings.TrimSpace(got) == want {
			return true
		}
	}
	return false
}
