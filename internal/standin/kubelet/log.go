package kubelet

import (
	"bytes"
	"sync"
	"time"
)

// Log is what one container has written. Its methods may be called concurrently; lines are kept in the order of Append.
type Log struct {
	most int // bytes kept

	mu      sync.Mutex
	lines   []line
	dropped int // lines that are no longer kept
	bytes   int
	ended   bool
	changed chan struct{} // closed and replaced at every change
}

type line struct {
	at   time.Time
	text []byte
}

// Repeat has the newest line be read so many times more, without room for it: the log of a container that wrote for hours.
func (l *Log) Repeat(times int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	last := l.lines[len(l.lines)-1]
	for range times {
		l.lines = append(l.lines, last)
	}
	l.tell()
}

// Append adds a line without its end, written at a time: any bytes, of any length, valid UTF-8 or not. The newest line is
// kept however long it is. After End it does nothing.
func (l *Log) Append(at time.Time, text []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.ended {
		return
	}
	l.lines = append(l.lines, line{at: at, text: bytes.Clone(text)})
	l.bytes += len(text)
	for l.bytes > l.most && len(l.lines) > 1 {
		l.bytes -= len(l.lines[0].text)
		l.lines[0] = line{}
		l.lines = l.lines[1:]
		l.dropped++
	}
	l.tell()
}

// End says that the container has ended: who follows the log gets what there is, and its end.
func (l *Log) End() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.ended {
		l.ended = true
		l.tell()
	}
}

func (l *Log) tell() {
	close(l.changed)
	l.changed = make(chan struct{})
}

// batch bounds what one reader holds at a time.
const batch = 64

// from returns some lines from the given number on, the number after them, and what tells of more.
func (l *Log) from(number int) (lines []line, next int, ended bool, changed <-chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	start := min(max(number-l.dropped, 0), len(l.lines))
	stop := min(start+batch, len(l.lines))
	lines = append(lines, l.lines[start:stop]...)
	return lines, l.dropped + stop, l.ended && stop == len(l.lines), l.changed
}

// tail is the number of the line from which on there are so many.
func (l *Log) tail(lines int64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped + max(len(l.lines)-int(min(lines, int64(len(l.lines)))), 0)
}

// end is the number after the last line there is.
func (l *Log) end() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.dropped + len(l.lines)
}
