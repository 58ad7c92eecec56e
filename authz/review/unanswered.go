package review

import (
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"hangar.io/glidepath/internal/problem"
)

// unanswered is the answer to a call whose question has none. An error that is
// a caller's answer already stays as it is.
func unanswered(message string, err error) error {
	if _, ok := errors.AsType[*problem.Error](err); ok {
		return err
	}
	p := problem.New(problem.SourceFailed, message).WithCause(err)
	if b, ok := errors.AsType[*busy](err); ok && b.after > 0 {
		return p.WithHint(fmt.Sprintf("the API server is busy: try again in %d s", int(b.after.Seconds())))
	}
	return p
}

// busy is the API server's answer that it has too much to do.
//
// It is passed on and not waited out. A second, which is the least that it asks
// for, is half of what a call may wait; a slot that is held meanwhile is one
// fewer for others; and a gateway that tries again by itself adds to the load
// that it was asked to take away.
type busy struct {
	after time.Duration // 0 when it does not say
}

// maxAfter bounds what is passed on: a longer time is none to wait.
const maxAfter = time.Minute

func newBusy(h http.Header) *busy {
	seconds, err := strconv.Atoi(h.Get("Retry-After"))
	if err != nil || seconds <= 0 {
		return &busy{}
	}
	return &busy{after: min(time.Duration(seconds)*time.Second, maxAfter)}
}

func (*busy) Error() string { return "the API server answered 429 Too Many Requests" }
