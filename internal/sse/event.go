package sse

import (
	"bytes"
	"errors"
	"strconv"
	"strings"
	"time"
)

// Event is one event. Data may have line ends of any kind; a reader gets each
// of them as \n.
type Event struct {
	// ID is what a reader that comes back says it has seen. Without one the
	// reader keeps the last it got.
	ID string
	// Type is the name of the event; empty is "message".
	Type string
	Data []byte
}

var errLine = errors.New("an id or type of an event with a line end or a NUL in it")

// Append writes the event behind dst.
func (e Event) Append(dst []byte) ([]byte, error) {
	if strings.ContainsAny(e.ID+e.Type, "\r\n\x00") {
		return dst, errLine
	}
	if e.ID != "" {
		dst = AppendID(dst, e.ID)
	}
	if e.Type != "" {
		dst = append(append(append(dst, "event: "...), e.Type...), '\n')
	}
	for rest := e.Data; ; {
		end := bytes.IndexAny(rest, "\r\n")
		if end < 0 {
			dst = append(append(append(dst, "data: "...), rest...), '\n')
			break
		}
		dst = append(append(append(dst, "data: "...), rest[:end]...), '\n')
		if bytes.HasPrefix(rest[end:], []byte("\r\n")) {
			end++
		}
		rest = rest[end+1:]
	}
	return append(dst, '\n'), nil
}

// AppendID writes the line of an id behind dst, which is the beginning of an
// event, or an event that has nothing but its id when an empty line follows.
// The id has no line end in it.
func AppendID(dst []byte, id string) []byte {
	return append(append(append(dst, "id: "...), id...), '\n')
}

// Comment gives a line that readers skip.
func Comment(text string) []byte {
	return []byte(": " + strings.NewReplacer("\r", " ", "\n", " ").Replace(text) + "\n\n")
}

// Retry gives the line that says how long a reader is to wait before it comes
// back.
func Retry(wait time.Duration) []byte {
	return append(strconv.AppendInt([]byte("retry: "), wait.Milliseconds(), 10), "\n\n"...)
}
