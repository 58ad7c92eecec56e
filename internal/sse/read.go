package sse

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Reader reads a stream as the HTML standard has it. It is for clients; what it
// holds of one event is bounded by the size that NewReader is given.
type Reader struct {
	// OnComment is called with each comment as it comes, while Next waits; nil
	// for nobody.
	OnComment func(text string)

	lines  *bufio.Scanner
	first  bool
	lastID string
	retry  time.Duration
	most   int
}

// ErrTooLarge says that an event is larger than the reader takes.
var ErrTooLarge = errors.New("an event is larger than it may be")

// NewReader reads events of at most size bytes each.
func NewReader(r io.Reader, size int) *Reader {
	s := bufio.NewScanner(r)
	s.Buffer(make([]byte, 0, min(size, 4<<10)), size)
	split := lineSplitter{}
	s.Split(split.split)
	return &Reader{lines: s, first: true, most: size}
}

// LastID is what a client is to send when it comes back.
func (r *Reader) LastID() string { return r.lastID }

// Retry is how long a client is to wait before it comes back; 0 when the
// stream did not say.
func (r *Reader) Retry() time.Duration { return r.retry }

// Next waits for the next event. At the end of the stream, also in the middle
// of an event, it gives io.EOF.
func (r *Reader) Next() (Event, error) {
	var kind string
	var data []byte
	some := false
	id := r.lastID
	for r.lines.Scan() {
		line := r.lines.Bytes()
		if r.first {
			line = bytes.TrimPrefix(line, []byte("\ufeff"))
			r.first = false
		}
		if len(line) == 0 {
			r.lastID = id
			if !some {
				kind = ""
				continue
			}
			if kind == "" {
				kind = "message"
			}
			return Event{ID: r.lastID, Type: kind, Data: bytes.TrimSuffix(data, []byte("\n"))}, nil
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		if len(name) == 0 {
			if r.OnComment != nil {
				r.OnComment(text(value)) // with the space that others lose
			}
			continue
		}
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(name) {
		case "event":
			kind = text(value)
		case "data":
			some = true
			data = append(append(data, text(value)...), '\n')
			if len(data) > r.most {
				return Event{}, ErrTooLarge
			}
		case "id":
			if !bytes.ContainsRune(value, 0) {
				id = text(value)
			}
		case "retry":
			r.setRetry(string(value))
		}
	}
	if errors.Is(r.lines.Err(), bufio.ErrTooLong) {
		return Event{}, ErrTooLarge
	}
	if err := r.lines.Err(); err != nil {
		return Event{}, err
	}
	return Event{}, io.EOF
}

func (r *Reader) setRetry(value string) {
	if value == "" || strings.Trim(value, "0123456789") != "" {
		return
	}
	const most = int64(24 * time.Hour / time.Millisecond)
	ms, err := strconv.ParseInt(value, 10, 64)
	if err != nil || ms > most {
		ms = most // more than anybody waits
	}
	r.retry = time.Duration(ms) * time.Millisecond
}

// text is a value with what is no UTF-8 replaced.
func text(value []byte) string {
	if utf8.Valid(value) {
		return string(value)
	}
	return string([]rune(string(value))) // a replacement for each byte
}

// lineSplitter cuts lines that end with \n, \r\n or \r. A line that ends with \r
// is given at once: its event must not wait for the byte behind it, which is
// skipped if it is a \n.
type lineSplitter struct{ afterCR bool }

func (s *lineSplitter) split(data []byte, atEOF bool) (advance int, token []byte, err error) {
	skip := 0
	if s.afterCR && len(data) > 0 {
		s.afterCR = false
		if data[0] == '\n' {
			skip = 1
		}
	}
	end := bytes.IndexAny(data[skip:], "\r\n")
	if end < 0 {
		if atEOF || skip > 0 {
			return len(data[:skip]), nil, eofOf(atEOF)
		}
		return 0, nil, nil
	}
	end += skip
	s.afterCR = data[end] == '\r'
	return end + 1, data[skip:end:end], nil
}

// eofOf drops what follows the last line end: an event without its end is none.
func eofOf(atEOF bool) error {
	if atEOF {
		return bufio.ErrFinalToken
	}
	return nil
}
