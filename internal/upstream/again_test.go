package upstream_test

import (
	"context"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/upstream"
)

func TestHowLongASourceAsksToBeLeftAlone(t *testing.T) {
	t.Parallel()
	const date = "Fri, 20 Nov 2026 12:00:00 GMT"
	for name, tt := range map[string]struct {
		value, date string
		want        time.Duration
		asked       bool
	}{
		"it does not":                              {"", "", 0, false},
		"seconds":                                  {"7", "", 7 * time.Second, true},
		"none":                                     {"0", "", 0, true},
		"a time, by its own clock":                 {"Fri, 20 Nov 2026 12:00:30 GMT", date, 30 * time.Second, true},
		"a time that has passed":                   {"Fri, 20 Nov 2026 11:00:00 GMT", date, 0, true},
		"less than nothing":                        {"-1", "", 0, false},
		"a part of a second, which is none":        {"1.5", "", 0, false},
		"more seconds than there are":              {"99999999999999999999", "", 0, false},
		"something else":                           {"soon", "", 0, false},
		"a time that is none":                      {"Fri, 40 Nov 2026 12:00:30 GMT", date, 0, false},
		"a time before ours, without clock":        {"Fri, 20 Nov 1970 12:00:30 GMT", "", 0, true},
		"a time before ours, a clock that is none": {"Fri, 20 Nov 1970 12:00:30 GMT", "today", 0, true},
	} {
		h := http.Header{}
		h.Set("Retry-After", tt.value)
		h.Set("Date", tt.date)
		if got, asked := upstream.RetryAfter(h); got != tt.want || asked != tt.asked {
			t.Errorf("%s: %s, %t", name, got, asked)
		}
	}
}

func FuzzRetryAfter(f *testing.F) {
	f.Add("7", "")
	f.Add("Fri, 20 Nov 2026 12:00:30 GMT", "Fri, 20 Nov 2026 12:00:00 GMT")
	f.Fuzz(func(t *testing.T, value, date string) {
		d, asked := upstream.RetryAfter(http.Header{"Retry-After": {value}, "Date": {date}})
		if d < 0 || d > 0 && !asked {
			t.Errorf("%q at %q: %s, %t", value, date, d, asked)
		}
	})
}

func TestThePauseBeforeARequestIsMadeAgain(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		usual, asked, deadline time.Duration
		want                   bool
		least, most            time.Duration
	}{
		"about as usual":                     {usual: 10 * time.Second, want: true, least: 5 * time.Second, most: 15 * time.Second},
		"no less than was asked for":         {usual: time.Second, asked: 20 * time.Second, deadline: time.Minute, want: true, least: 20 * time.Second, most: 22 * time.Second},
		"not when there is no time for that": {usual: time.Second, asked: 20 * time.Second, deadline: 19 * time.Second},
		"not when there is none any more":    {usual: time.Second, deadline: -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.deadline != 0 {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeout(ctx, tt.deadline)
					defer cancel()
				}
				began := time.Now()
				got := upstream.Pause(ctx, tt.usual, tt.asked)
				if took := time.Since(began); got != tt.want || took < tt.least || took > tt.most {
					t.Errorf("%t after %s", got, took)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		began := time.Now()
		if upstream.Pause(ctx, time.Hour, 0) || time.Since(began) != time.Second {
			t.Errorf("a caller that leaves waits for %s", time.Since(began))
		}
	})
}
