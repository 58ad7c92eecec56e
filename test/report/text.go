package report

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// add keeps what a test, or the package itself, printed.
func (p *run) add(test, text string) {
	if framing(text) {
		return
	}
	if _, known := p.said[test]; !known && test != "" {
		p.order = append(p.order, test)
	}
	p.said[test] = append(p.said[test], text)
}

// text is what `go test` prints of a package that ended: of one that did not fail
// its last line, else also what the package printed itself, and the tests that did
// not end well. One that was running when the package died did not end at all.
func (p *run) text(e event) string {
	failed := e.Action == "fail"
	var b strings.Builder
	if failed {
		for _, test := range p.order {
			b.WriteString(p.textOf(test))
			delete(p.said, test) // it may have begun twice
		}
	}
	for _, line := range p.said[""] {
		if verdict(line) || (failed && line != "PASS\n") {
			b.WriteString(line)
		}
	}
	if !slices.ContainsFunc(p.said[""], verdict) { // a test program that nobody but test2json ran
		word := map[bool]string{true: "FAIL", false: "ok  "}[failed]
		fmt.Fprintf(&b, "%s\t%s\t%.3fs\n", word, e.Package, e.Elapsed)
	}
	return b.String()
}

// textOf has the line that says how the test ended first, and subtests indented,
// as `go test` prints them.
func (p *run) textOf(test string) string {
	var ends, rest strings.Builder
	for _, piece := range p.said[test] {
		if strings.HasPrefix(piece, "--- FAIL: ") {
			ends.WriteString(piece)
		} else {
			rest.WriteString(piece)
		}
	}
	var b strings.Builder
	for line := range strings.Lines(ends.String() + rest.String()) {
		b.WriteString(strings.Repeat("    ", strings.Count(test, "/")) + line)
	}
	return b.String()
}

// framing tells the lines that only say that a test goes on.
func framing(text string) bool { return strings.HasPrefix(text, "=== ") }

// verdict tells the line that `go test` prints of a package.
func verdict(text string) bool {
	return strings.HasPrefix(text, "ok  \t") || strings.HasPrefix(text, "?   \t") || strings.HasPrefix(text, "FAIL\t")
}

// reason is what a skipped test printed, in one line.
func (p *run) reason(test string) string {
	var b strings.Builder
	for _, piece := range p.said[test] {
		if !strings.HasPrefix(piece, "--- SKIP: ") {
			b.WriteString(piece)
		}
	}
	return strings.Join(strings.Fields(b.String()), " ")
}

// summary prints which tests were skipped, and which took longest.
func (s *suite) summary(slowest int) {
	if len(s.skipped) > 0 {
		s.print("skipped:\n")
		for _, r := range s.skipped {
			s.print(fmt.Sprintf("  %s: %s\n", r.name, r.why))
		}
	}
	slices.SortStableFunc(s.ended, func(a, b result) int { return cmp.Compare(b.took, a.took) })
	s.ended = s.ended[:min(len(s.ended), slowest)]
	if len(s.ended) > 0 {
		s.print("slowest tests:\n")
		for _, r := range s.ended {
			s.print(fmt.Sprintf("%8.1f s  %s\n", r.took.Round(100*time.Millisecond).Seconds(), r.name))
		}
	}
}
