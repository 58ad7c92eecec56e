package replay

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
)

const (
	// maxLine bounds a line in bytes. The edge bounds what goes into one.
	maxLine = 64 << 10
	// maxShown bounds how many malformed lines are shown; all are counted.
	maxShown = 20
	// checkEvery is how many lines are read between two looks at the context.
	checkEvery = 1 << 10
)

// kind is what calls have in common that are decided alike.
type kind struct {
	caller, op, app string
	// delegated says that the call named a person. Which one changes nothing.
	delegated bool
	allowed   bool
	rule      string // of a refusal
}

// calls are those of one kind.
type calls struct {
	count       int
	first, last string
}

// Malformed is a line that could not be read.
type Malformed struct {
	// Line is its place: the input's name and the number, from 1.
	Line string `json:"line"`
	Why  string `json:"why"`
}

// Tally counts calls by kind, in memory that is bounded whatever is read. It is
// for one goroutine.
type Tally struct {
	max   int
	kinds map[kind]*calls
	lines, audit, other,
	malformed, beyond int
	shown []Malformed
}

// NewTally counts at most that many kinds of calls. Calls of further kinds are
// counted together, and are said not to have been judged.
func NewTally(kinds int) *Tally { return &Tally{max: kinds, kinds: map[kind]*calls{}} }

// Read counts the lines of an input. A line that cannot be read is counted and
// goes on; the error is that of reading.
func (t *Tally) Read(ctx context.Context, name string, r io.Reader) error {
	in := bufio.NewReaderSize(r, maxLine)
	for number := 1; ; number++ {
		if number%checkEvery == 0 && ctx.Err() != nil {
			return fmt.Errorf("reading %s: %w", name, ctx.Err())
		}
		raw, err := in.ReadSlice('\n')
		long := errors.Is(err, bufio.ErrBufferFull)
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = in.ReadSlice('\n')
		}
		if err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		t.line(fmt.Sprintf("%s:%d", name, number), bytes.TrimSpace(raw), long)
		if errors.Is(err, io.EOF) {
			return nil
		}
	}
}

func (t *Tally) line(place string, raw []byte, long bool) {
	if len(raw) == 0 && !long {
		return
	}
	t.lines++
	l, err := Line{}, fmt.Errorf("is longer than %d bytes", maxLine)
	if !long {
		l, err = ParseLine(raw)
	}
	switch {
	case errors.Is(err, ErrOther):
		t.other++
	case err != nil:
		t.malformed++
		if len(t.shown) < maxShown {
			t.shown = append(t.shown, Malformed{Line: place, Why: err.Error()})
		}
	default:
		t.audit++
		t.add(l)
	}
}

func (t *Tally) add(l Line) {
	k := kind{caller: l.Caller, op: l.Op, app: l.App, delegated: l.Person != "", allowed: l.Allowed}
	if !l.Allowed {
		k.rule = l.Rule
	}
	c, ok := t.kinds[k]
	if !ok {
		if len(t.kinds) >= t.max {
			t.beyond++
			return
		}
		c = &calls{first: l.Time}
		t.kinds[k] = c
	}
	c.count++
	c.last = l.Time
}

// Check says whether there is anything to decide again.
func (t *Tally) Check() error {
	switch {
	case t.audit > 0:
		return nil
	case t.malformed > 0:
		return fmt.Errorf("not one audit line among %d lines; %s %s", t.lines, t.shown[0].Line, t.shown[0].Why)
	}
	return fmt.Errorf("not one audit line among %d lines", t.lines)
}
