package report

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// maxLine bounds an event: a test may print a line of any length.
const maxLine = 64 << 20

// event is one line of `go test -json` (go doc test2json).
type event struct {
	Action  string
	Package string
	Test    string // empty for what is of the package
	Output  string
	Elapsed float64 // seconds, of the actions that end a test
}

// Print reads events until their end and prints to out what became of the tests,
// with the slowest of them at last. What is no event is printed as it is. It says
// nothing about whether the tests passed: the exit code of `go test` does.
func Print(events io.Reader, out io.Writer, slowest int) error {
	s := suite{out: bufio.NewWriter(out), running: map[string]*run{}}
	lines := bufio.NewScanner(events)
	lines.Buffer(nil, maxLine)
	var failed error
	for lines.Scan() && failed == nil {
		var e event
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil || e.Action == "" {
			s.print(lines.Text() + "\n")
		} else {
			s.take(e)
		}
		failed = s.out.Flush() // who watches sees each package as it ends
	}
	if failed == nil {
		s.summary(slowest)
		failed = s.out.Flush()
	}
	if err := errors.Join(failed, lines.Err()); err != nil {
		return fmt.Errorf("printing what the tests say: %w", err)
	}
	return nil
}

// suite is what is known of the packages so far.
type suite struct {
	out     *bufio.Writer
	running map[string]*run // by package
	ended   []result        // tests, without their subtests
	skipped []result        // subtests too
}

// run is a package that is being tested. What it printed itself is under "".
type run struct {
	order []string            // tests, as they began
	said  map[string][]string // pieces by test, but for those of tests that ended well
}

// result is how a test ended.
type result struct {
	name string // with its package
	took time.Duration
	why  string // what a skipped one says
}

func (s *suite) take(e event) {
	p := s.running[e.Package]
	if p == nil {
		p = &run{said: map[string][]string{}}
		s.running[e.Package] = p
	}
	switch e.Action {
	case "output":
		p.add(e.Test, e.Output)
	case "build-output":
		s.print(e.Output)
	case "pass", "fail", "skip":
		s.end(e, p)
	}
}

func (s *suite) end(e event, p *run) {
	if e.Test == "" {
		s.print(p.text(e))
		delete(s.running, e.Package)
		return
	}
	r := result{name: e.Package + " " + e.Test, took: time.Duration(e.Elapsed * float64(time.Second))}
	if !strings.Contains(e.Test, "/") { // a test's time holds that of its subtests
		s.ended = append(s.ended, r)
	}
	if e.Action == "skip" {
		r.why = p.reason(e.Test)
		s.skipped = append(s.skipped, r)
	}
	if e.Action != "fail" {
		delete(p.said, e.Test) // a suite prints a lot
	}
}

func (s *suite) print(text string) { _, _ = s.out.WriteString(text) } // the next Flush gives the error
