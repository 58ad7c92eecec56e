package podlog

import (
	"bytes"
	"time"
)

const (
	// maxStamp is how long the time at the beginning of a line may be, with the
	// space behind it: nine digits of a second and an offset.
	maxStamp = len("2006-01-02T15:04:05.000000000+00:00 ")
	// record is how much of a line a container runtime writes at once. A longer
	// line has a time for each record in the node's file, and that of the first
	// one in the log.
	record = 4 << 10
	// keptEnd is how much of the end of a log is kept to compare.
	keptEnd = 1 << 10
)

// lines follows a log with times and knows its last line. The zero value has
// seen nothing.
type lines struct {
	head   [maxStamp]byte // of the last line, with its time
	heads  int            // bytes of it
	length int            // of the last line
	ended  bool           // it has its line end, so that what comes begins a line
	any    bool

	end  [keptEnd]byte // the last bytes of all
	ends int
}

// take looks at the next bytes and gives how many of them it is sure of: all
// but the beginning of a line that does not show yet whether it begins with a
// time. Those have to be given again with what follows them. Where a line does
// not begin with a time, ok is false and n is how many came before it.
func (l *lines) take(b []byte) (n int, ok bool) {
	for n < len(b) {
		rest := b[n:]
		if !l.any || l.ended {
			stamp, known := stampOf(rest)
			if !known {
				return n, true
			}
			if stamp == 0 {
				return n, false
			}
			l.any, l.ended = true, false
			l.heads = copy(l.head[:], rest[:stamp])
			l.length = 0
		}
		end := bytes.IndexByte(rest, '\n') + 1
		l.ended = end > 0
		if !l.ended {
			end = len(rest)
		}
		l.length += end
		l.keep(rest[:end])
		n += end
	}
	return n, true
}

// keep remembers the end of what it is given.
func (l *lines) keep(b []byte) {
	if len(b) >= keptEnd {
		l.ends = copy(l.end[:], b[len(b)-keptEnd:])
		return
	}
	old := min(l.ends, keptEnd-len(b))
	copy(l.end[:], l.end[l.ends-old:l.ends])
	l.ends = old + copy(l.end[old:], b)
}

// stampOf gives the length of the time that a line begins with, its space
// included, 0 where it begins with none. known is false while too little of the
// line is there to say.
func stampOf(line []byte) (length int, known bool) {
	const shape = "0000-00-00T00:00:00"
	for i := range min(len(shape), len(line)) {
		c := line[i]
		if shape[i] == '0' && (c < '0' || c > '9') || shape[i] != '0' && c != shape[i] {
			return 0, true
		}
	}
	if space := bytes.IndexByte(line[:min(len(line), maxStamp)], ' '); space >= len(shape) {
		return space + 1, true
	}
	return 0, len(line) >= maxStamp
}

// at is when the last line was written, zero where there is none.
func (l *lines) at() time.Time {
	if !l.any {
		return time.Time{}
	}
	at, err := time.Parse(time.RFC3339Nano, string(l.head[:l.heads-1]))
	if err != nil {
		return time.Time{}
	}
	return at
}

// covers says whether a log that was read goes as far as a last line that was
// read apart.
func (l *lines) covers(last *lines) bool {
	if !last.any {
		return true
	}
	switch l.at().Compare(last.at()) {
	case 1:
		return true
	case 0:
		return l.length >= last.length
	default:
		// The last record of a long line has a time of its own.
		text := bytes.TrimSuffix(last.end[max(0, last.ends-last.length+last.heads):last.ends], []byte("\n"))
		return l.length > record && len(text) > 0 && bytes.HasSuffix(bytes.TrimSuffix(l.end[:l.ends], []byte("\n")), text)
	}
}
