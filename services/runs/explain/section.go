package explain

import (
	"bytes"
	"strings"
)

// sections tells the steps of a TaskRun's log apart. Tekton Results stores logs
// in several ways, and each says differently whose a line is:
//
//	[build] text                       before each line, as the tkn command prints it
//	container-step-build: message=text before each line, out of Loki
//	step-build :-                      once before the lines of the step, out of a bucket
//
// Only the names of the TaskRun's own steps count, as tools print lines of such
// forms too. A line without one is of the step before: a step may print several
// lines at once.
type sections struct {
	prefixes map[string]string // what a line begins with, of which step
	headers  map[string]string // whole lines
	current  string
	marked   bool // the log has said whose a line is
}

// unnamed are the steps that Tekton itself puts before a TaskRun's.
func unnamed() []string { return []string{"prepare", "place-scripts", "working-dir-initializer"} }

func newSections(steps []string) *sections {
	s := &sections{prefixes: map[string]string{}, headers: map[string]string{}}
	for _, step := range append(unnamed(), steps...) {
		s.prefixes["["+step+"] "] = step
		s.headers["["+step+"]"] = step // with nothing after it
		for _, container := range []string{"step-" + step, step} {
			s.prefixes["container-"+container+": message="] = step
			// The name is cut by a set of characters in place of its ending.
			s.headers[strings.TrimRight(container, ".log")+" :-"] = step
		}
	}
	return s
}

// line gives whose a line is, "" while nothing has said so, and its text.
func (s *sections) line(line []byte, continued bool) (step string, text []byte) {
	if continued {
		return s.current, line
	}
	if len(line) <= maxPrefix {
		if step, ok := s.headers[string(bytes.TrimRight(line, " \r"))]; ok {
			s.current, s.marked = step, true
			return step, nil
		}
	}
	if end := prefixEnd(line); end > 0 {
		if step, ok := s.prefixes[string(line[:end])]; ok {
			s.current, s.marked = step, true
			return step, line[end:]
		}
	}
	return s.current, line
}

// maxPrefix bounds the search for the end of a prefix: names have 63 characters.
const maxPrefix = 128

// prefixEnd gives where a prefix of a line ends, 0 when it has none.
func prefixEnd(line []byte) int {
	start := line[:min(len(line), maxPrefix)]
	switch {
	case bytes.HasPrefix(start, []byte("[")):
		if i := bytes.Index(start, []byte("] ")); i > 0 {
			return i + len("] ")
		}
	case bytes.HasPrefix(start, []byte("container-")):
		if i := bytes.Index(start, []byte(": message=")); i > 0 {
			return i + len(": message=")
		}
	}
	return 0
}
