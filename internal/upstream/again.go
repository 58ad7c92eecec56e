package upstream

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"time"
)

// RetryAfter gives how long a source asked to be left alone, as seconds or as a
// time (RFC 9110, 10.2.3), and whether it did. A time counts from the source's own
// clock where it says what that is.
func RetryAfter(h http.Header) (time.Duration, bool) {
	value := h.Get("Retry-After")
	if seconds, err := strconv.ParseUint(value, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second, true
	}
	at, err := http.ParseTime(value)
	if err != nil {
		return 0, false
	}
	now, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		now = time.Now()
	}
	return max(0, at.Sub(now)), true
}

// Pause waits until a request may be made again: about as long as usual, and no
// less than the source asked for. It reports false when ctx ends first, at once
// where that is plain: what was answered last is the answer then.
//
// A part of the wait is chance, so that those who failed together do not come
// together.
func Pause(ctx context.Context, usual, asked time.Duration) bool {
	wait := usual/2 + rand.N(usual) //nolint:gosec // nobody gains by guessing a pause
	if asked > 0 {
		wait += asked
	}
	if until, ok := ctx.Deadline(); ctx.Err() != nil || ok && time.Until(until) < wait {
		return false
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
