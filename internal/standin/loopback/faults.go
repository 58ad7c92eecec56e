package loopback

import (
	"context"
	"net/http"
	"time"
)

// Abort cuts the connection, or the HTTP/2 stream, of the handler that calls it
// without ending the answer. It does not return.
func Abort() {
	panic(http.ErrAbortHandler) //nolint:forbidigo // the one way net/http has to do that
}

// Pause waits, and reports false when ctx ended before.
func Pause(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
