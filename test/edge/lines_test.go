package edge

import (
	"bytes"
	"encoding/json"
	"net/http"
	"os"
	"testing"
)

// line is one audit line.
type line map[string]any

// lines gives the audit lines so far.
func (e *edge) lines(t *testing.T) []line {
	t.Helper()
	data, err := os.ReadFile(e.envoy.AccessLog)
	if err != nil {
		t.Fatal(err)
	}
	var out []line
	for raw := range bytes.Lines(data) {
		if !bytes.HasSuffix(raw, []byte("\n")) {
			break // still being written
		}
		var l line
		if err := json.Unmarshal(raw, &l); err != nil {
			t.Fatalf("an audit line is not JSON: %q", raw)
		}
		out = append(out, l)
	}
	return out
}

// lineOf waits for the one line of the answer's trace.
func (e *edge) lineOf(t *testing.T, resp *http.Response) line {
	t.Helper()
	trace := resp.Header.Get("X-Glidepath-Trace-Id")
	if trace == "" {
		t.Fatal("the answer has no trace id")
	}
	return e.lineWhere(t, "of trace "+trace, func(l line) bool { return l["traceId"] == trace })
}

// lineWhere waits until there is a line for which ok is true, and fails when
// there are several.
func (e *edge) lineWhere(t *testing.T, what string, ok func(line) bool) line {
	t.Helper()
	var found []line
	eventually(t, "there is a line "+what, func() bool {
		found = nil
		for _, l := range e.lines(t) {
			if ok(l) {
				found = append(found, l)
			}
		}
		return len(found) > 0
	})
	if len(found) > 1 {
		t.Fatalf("%d lines %s: %v", len(found), what, found)
	}
	return found[0]
}

// fence makes one more call and waits for its line: with one worker, the lines
// of all calls that ended before are then written too.
func (e *edge) fence(t *testing.T) {
	t.Helper()
	e.lineOf(t, e.get(t, "/v1/live"))
}

// want checks keys of a line; an absent key is nil.
func (l line) want(t *testing.T, want line) {
	t.Helper()
	for key, value := range want {
		if l[key] != value {
			t.Errorf("%s is %v, want %v, in the line %v", key, l[key], value, l)
		}
	}
}
