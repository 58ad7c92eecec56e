package explain

import (
	"slices"
)

// maxTested bounds the bytes that regular expressions are held against for one
// log, a few seconds' worth. A log that is not made for it stays below a
// hundredth: words stand in few lines. One that is made for it is not tested
// beyond it.
const maxTested = 64 << 20

// matcher finds the first failure of a catalogue, in the catalogue's order, that
// any of the lines shows.
type matcher struct {
	catalogue *Catalogue
	best      int    // index of the failure, len(failures) for none yet
	line      string // that showed it, the first one that did
	tested    int64  // bytes
	skipped   bool   // something was not tested, since so much was
	scratch   []byte
	due       []int
}

func (c *Catalogue) matcher() *matcher {
	return &matcher{catalogue: c, best: len(c.failures)}
}

// test holds a line against the failures that come before the best one so far.
func (m *matcher) test(line []byte) {
	if m.best == 0 || len(line) == 0 {
		return
	}
	c := m.catalogue
	m.due = append(m.due[:0], c.wordless...)
	if c.words != nil {
		m.scratch = lower(m.scratch, line)
		for _, found := range c.words.FindAllOverlapping(m.scratch) {
			m.due = append(m.due, c.byWord[found.PatternID]...)
		}
		slices.Sort(m.due)
		m.due = slices.Compact(m.due)
	}
	for _, i := range m.due {
		p := c.patterns[i]
		switch {
		case p.failure >= m.best:
			return
		case m.tested > c.maxTested:
			m.skipped = true
			return
		}
		m.tested += int64(len(line))
		if p.expression.Match(line) {
			m.best, m.line = p.failure, excerpt(line)
			return
		}
	}
}

// found gives the failure, or nil.
func (m *matcher) found() *KnownFailure {
	if m.best == len(m.catalogue.failures) {
		return nil
	}
	f := m.catalogue.failures[m.best]
	return &f
}
