package explain

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
)

const (
	// maxLine is the longest line that is read as one; a longer one is read as
	// several.
	maxLine = 16 << 10
	// maxExcerpt is how much of a line is shown.
	maxExcerpt = 2 << 10
	// maxLog is the longest log that is read.
	maxLog = 256 << 20
)

var errTooLong = errors.New("the log is longer than any that is read")

// eachLine calls back for each line of a log of at most so many bytes, without
// the line's end. Of a line that is longer than maxLine the parts after the first
// are continued. The line is good until the callback returns.
func eachLine(r io.Reader, most int64, do func(line []byte, continued bool)) error {
	limited := &io.LimitedReader{R: r, N: most + 1}
	lines := bufio.NewReaderSize(limited, maxLine)
	continued := false
	for {
		line, err := lines.ReadSlice('\n')
		if len(line) > 0 {
			do(bytes.TrimSuffix(line, []byte("\n")), continued)
		}
		continued = errors.Is(err, bufio.ErrBufferFull)
		switch {
		case err == nil || continued:
		case limited.N <= 0:
			return errTooLong
		case errors.Is(err, io.EOF):
			return nil
		default:
			return fmt.Errorf("reading the log: %w", err)
		}
	}
}

// clean gives a line as a terminal would show it in the end: what a carriage
// return went back over is gone, and so is all that moves or colours. It changes
// the line's memory.
func clean(line []byte) []byte {
	line = bytes.TrimRight(line, "\r")
	if i := bytes.LastIndexByte(line, '\r'); i >= 0 {
		line = line[i+1:]
	}
	if !slices.ContainsFunc(line, control) {
		return line
	}
	shown := line[:0]
	for i := 0; i < len(line); {
		switch b := line[i]; {
		case b == esc:
			i += sequence(line[i:])
		case control(b):
			i++
		default:
			shown = append(shown, b)
			i++
		}
	}
	return shown
}

const (
	esc = 0x1b
	bel = 0x07
	del = 0x7f
)

func control(b byte) bool { return b < ' ' && b != '\t' || b == del }

// sequence gives the length of the escape sequence that a text begins with
// (ECMA-48): a control sequence, a string up to its end, or two bytes.
func sequence(text []byte) int {
	if len(text) < 2 {
		return len(text)
	}
	switch text[1] {
	case '[':
		for i := 2; i < len(text); i++ {
			if text[i] >= '@' && text[i] <= '~' {
				return i + 1
			}
		}
		return len(text)
	case ']', 'P', '_', '^', 'X':
		for i := 2; i < len(text); i++ {
			if text[i] == bel {
				return i + 1
			}
			if text[i] == esc && i+1 < len(text) && text[i+1] == '\\' {
				return i + 2
			}
		}
		// A string that never ends would hide the rest of the line.
		return 2
	default:
		return 2
	}
}

// excerpt gives what is shown of a line.
func excerpt(line []byte) string {
	if len(line) <= maxExcerpt {
		return strings.ToValidUTF8(string(line), "\uFFFD")
	}
	return strings.ToValidUTF8(string(line[:maxExcerpt]), "") + "..."
}

// lastLines is how many lines say what an unknown failure is.
const lastLines = 15

// tail keeps the last lines, without those that are empty at the end.
type tail struct {
	lines [lastLines][]byte // a ring, whose memory is used again
	count int               // lines that were put into it
	empty int               // lines since the last that was not
}

func (t *tail) add(line []byte) {
	if len(bytes.TrimSpace(line)) == 0 {
		t.empty = min(t.empty+1, lastLines)
		return
	}
	for ; t.empty > 0; t.empty-- {
		if t.count > 0 {
			t.push(nil)
		}
	}
	t.push(line[:min(len(line), maxExcerpt+1)])
}

func (t *tail) push(line []byte) {
	at := &t.lines[t.count%lastLines]
	*at = append((*at)[:0], line...)
	t.count++
}

func (t *tail) String() string {
	var shown []string
	for i := max(0, t.count-lastLines); i < t.count; i++ {
		shown = append(shown, excerpt(t.lines[i%lastLines]))
	}
	return strings.Join(shown, "\n")
}
