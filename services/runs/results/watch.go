package results

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"
)

// errStalled says that an answer stopped in the middle.
var errStalled = errors.New("the answer brought nothing for too long")

// watch gives body, which fails when one read of it takes longer than most. The
// time that passes between reads is the reader's own and does not count. cancel
// ends the request; it is called when the body is closed too.
func watch(body io.ReadCloser, most time.Duration, cancel context.CancelFunc) io.ReadCloser {
	w := &watched{body: body, most: most, cancel: cancel}
	w.timer = time.AfterFunc(most, w.stall)
	w.timer.Stop()
	return w
}

type watched struct {
	body    io.ReadCloser
	most    time.Duration
	timer   *time.Timer
	stalled atomic.Bool
	cancel  context.CancelFunc
}

func (w *watched) stall() {
	w.stalled.Store(true)
	w.cancel()
}

// Read reads a part of the body.
func (w *watched) Read(p []byte) (int, error) {
	w.timer.Reset(w.most)
	n, err := w.body.Read(p)
	w.timer.Stop()
	if err != nil && !errors.Is(err, io.EOF) && w.stalled.Load() {
		err = errStalled
	}
	return n, err
}

// Close ends the request.
func (w *watched) Close() error {
	w.timer.Stop()
	w.cancel()
	return w.body.Close()
}
