package results

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"hangar.io/glidepath/internal/upstream"
)

var (
	// ErrNotFound says that Results has no such run.
	ErrNotFound = errors.New("Tekton Results has no such run")
	// ErrNoLog says that Results stored no log for a TaskRun.
	ErrNoLog = errors.New("Tekton Results stored no log")
	// ErrBadRecord says that one record is not what it should be. The records
	// behind it can be read.
	ErrBadRecord = errors.New("Tekton Results gave a bad record")
)

// Error is a failure of Results or of the relay. It never quotes what was
// answered: logs and objects hold secrets.
type Error struct {
	// Doing is what was being done.
	Doing string
	// Status is the HTTP status of the answer, 0 when there was none.
	Status int
	// Cause is what went wrong with an answer or on the way to it; may be nil.
	Cause error

	// after is how long the server asked to be left alone, if it did so.
	after   time.Duration
	limited bool
}

// refused gives an Error for an answer that is none.
func refused(doing string, answer *http.Response) *Error {
	e := &Error{Doing: doing, Status: answer.StatusCode}
	e.after, e.limited = upstream.RetryAfter(answer.Header)
	return e
}

// Error says what failed.
func (e *Error) Error() string {
	s := "Tekton Results: " + e.Doing
	if e.Status != 0 && e.Status != http.StatusOK {
		s += fmt.Sprintf(": answered %d", e.Status)
	}
	if e.Cause != nil {
		s += ": " + e.Cause.Error()
	}
	return s
}

// Unwrap gives the cause.
func (e *Error) Unwrap() error { return e.Cause }

// retryable reports whether the same call may succeed a moment later.
func (e *Error) retryable() bool {
	switch e.Status {
	case 0, http.StatusOK: // on the way, or in the middle of the answer
		return !errors.Is(e.Cause, errFinal) && !errors.Is(e.Cause, context.Canceled)
	case http.StatusTooManyRequests: // of Results itself, that an answer is too large
		return e.limited
	case http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
		return true
	default:
		return false
	}
}

// errFinal says that asking again gives the same.
var errFinal = errors.New("this does not change")

func final(text string) error { return &finalError{text} }

type finalError struct{ text string }

func (e *finalError) Error() string { return e.text }

func (e *finalError) Is(target error) bool { return target == errFinal }

// failed gives an Error for what a round trip or the reading of a body gave.
func failed(doing string, status int, err error) *Error {
	return &Error{Doing: doing, Status: status, Cause: err}
}

func badRecord(name, why string) error {
	if name == "" {
		return fmt.Errorf("%w: %s", ErrBadRecord, why)
	}
	return fmt.Errorf("%w: %s: %s", ErrBadRecord, name, why)
}
