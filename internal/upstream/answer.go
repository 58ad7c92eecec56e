package upstream

import (
	"context"
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"
)

// ErrStalled says that an answer stopped in the middle.
var ErrStalled = errors.New("the answer brought nothing for too long")

// Answer is what a source said. Its body is to be closed, which ends the request.
// It is for one goroutine.
type Answer struct {
	*http.Response

	body *body
}

// Reject notes, before the body is closed, that the answer is not what a source
// gives, whatever its status is.
func (a *Answer) Reject() { a.body.rejected = true }

// answer watches over the reading of an answer. ctx is the caller's, cancel ends
// the request, and end is told what became of it.
func answer(ctx context.Context, resp *http.Response, stall time.Duration, cancel context.CancelFunc, end func(outcome string)) *Answer {
	b := &body{ReadCloser: resp.Body, status: resp.StatusCode, stall: stall, end: end}
	b.became = func(err error) string { return inTheMiddle(ctx, err) }
	b.timer = time.AfterFunc(stall, func() {
		b.stalled.Store(true)
		cancel()
	})
	b.timer.Stop()
	resp.Body = b
	return &Answer{Response: resp, body: b}
}

// body fails when one read of it takes too long. The time that passes between
// reads is the reader's own and does not count.
type body struct {
	io.ReadCloser

	status   int
	stall    time.Duration
	timer    *time.Timer
	stalled  atomic.Bool
	rejected bool
	err      error // that ended the reading before the end
	once     sync.Once
	became   func(err error) string
	end      func(outcome string)
}

// Read reads a part of the body.
func (b *body) Read(p []byte) (int, error) {
	b.timer.Reset(b.stall)
	n, err := b.ReadCloser.Read(p)
	b.timer.Stop()
	switch {
	case err == nil, errors.Is(err, io.EOF):
		return n, err
	case b.stalled.Load():
		err = ErrStalled
	}
	b.err = err
	return n, err
}

// Close ends the request. What was not read is not wanted.
func (b *body) Close() error {
	b.timer.Stop()
	err := b.ReadCloser.Close()
	b.once.Do(func() { b.end(b.outcome()) })
	return err
}

func (b *body) outcome() string {
	switch {
	case b.err != nil:
		return b.became(b.err)
	case b.rejected:
		return rejected
	default:
		return ofStatus(b.status)
	}
}
