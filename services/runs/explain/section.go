package explain

import (
	"bytes"
	"strings"
)

// marking is how a log says whose its lines are. Tekton Results stores logs in
// several ways, each with a marking of its own.
type marking int

const (
	// undecided is the marking before the first line.
	undecided marking = iota
	// plain logs say nothing.
	plain
	// bracketed is "[build] text" on each line, as the tkn command prints it.
	bracketed
	// labelled is "container-step-build: message=text" on each line, out of Loki.
	labelled
	// headed is "step-build :-" once before the lines of a step, out of a bucket.
	headed
)

// sections tells the steps of a TaskRun's log apart.
//
// The first line decides which marking the log has, since tools print lines that
// look like each of them. For the same reason only the names of the TaskRun's own
// steps count after it. A line without a mark is of the step before: a step may
// print several lines at once.
type sections struct {
	marking marking
	names   map[marking]map[string]string // what a mark says, of which step
	current string
	marked  bool // the log has named a step
}

// unnamed are the steps that Tekton itself puts before a TaskRun's.
func unnamed() []string { return []string{"prepare", "place-scripts", "working-dir-initializer"} }

func newSections(steps []string) *sections {
	s := &sections{names: map[marking]map[string]string{bracketed: {}, labelled: {}, headed: {}}}
	for _, step := range append(unnamed(), steps...) {
		s.names[bracketed][step] = step
		for _, container := range []string{"step-" + step, step} {
			s.names[labelled][container] = step
			// The name is cut by a set of characters in place of its ending.
			s.names[headed][strings.TrimRight(container, ".log")] = step
		}
	}
	return s
}

// line gives whose a line is, "" while nothing has said so, and its text.
func (s *sections) line(line []byte, continued bool) (step string, text []byte) {
	if continued {
		return s.current, line
	}
	if s.marking == undecided && len(bytes.TrimSpace(line)) > 0 {
		s.decide(line)
	}
	name, text, ok := s.marking.split(line)
	if !ok {
		return s.current, line
	}
	step, ok = s.names[s.marking][string(name)]
	if !ok {
		return s.current, line
	}
	s.current, s.marked = step, true
	return step, text
}

// decide takes the marking of the log's first line. The name may be that of a
// container which is no step, such as one that a service mesh puts first.
func (s *sections) decide(line []byte) {
	s.marking = plain
	for _, m := range []marking{bracketed, labelled, headed} {
		if name, _, ok := m.split(line); ok && isName(name) {
			s.marking = m
			return
		}
	}
}

// maxMark bounds the search for the end of a mark: names have 63 characters.
const maxMark = 128

// split takes the mark off a line. The text of a header is nil.
func (m marking) split(line []byte) (name, text []byte, ok bool) {
	start := line[:min(len(line), maxMark)]
	switch m {
	case bracketed:
		return between(start, line, "[", "] ", "]")
	case labelled:
		return between(start, line, "container-", ": message=", ": message=")
	case headed:
		if len(line) <= maxMark {
			name, ok = bytes.CutSuffix(bytes.TrimRight(line, " \r"), []byte(" :-"))
		}
	}
	return name, nil, ok
}

// between takes a mark off a line, which begins with start: the name stands
// between two texts. The second one is another where no text of the line follows.
func between(start, line []byte, before, after, last string) (name, text []byte, ok bool) {
	name, ok = bytes.CutPrefix(start, []byte(before))
	if !ok {
		return nil, nil, false
	}
	if i := bytes.Index(name, []byte(after)); i > 0 {
		return name[:i], line[len(before)+i+len(after):], true
	}
	if len(line) > maxMark {
		return nil, nil, false
	}
	name, ok = bytes.CutSuffix(bytes.TrimRight(name, " \r"), []byte(last))
	return name, nil, ok
}

// isName says whether a container may have a name, or what is left of it after
// its end was cut.
func isName(name []byte) bool {
	return len(name) > 0 && len(bytes.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789-")) == 0
}
