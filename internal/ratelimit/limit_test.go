package ratelimit_test

import (
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/ratelimit"
)

func TestALimitIsReadAsItIsWritten(t *testing.T) {
	t.Parallel()
	for _, l := range []ratelimit.Limit{
		{Bucket: "defaults", Requests: 60, Per: time.Minute, Burst: 120},
		{Bucket: "operations.listLive", Requests: 1, Per: ratelimit.MaxPer, Burst: 1},
		{Bucket: "backends.live-hub", Requests: ratelimit.MaxRequests, Per: ratelimit.MinPer, Burst: ratelimit.MaxRequests},
		{Bucket: "x", Requests: 3, Per: 1500 * time.Millisecond, Burst: 1},
	} {
		got, err := ratelimit.Parse(l.String())
		if err != nil || got != l {
			t.Errorf("%s is read as %+v, %v", l, got, err)
		}
	}
}

func TestALimitThatIsNoneIsRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ text, want string }{
		"nothing":                       {"", "parsing"},
		"no burst":                      {"defaults 60/1m", "parsing"},
		"a word for a number":           {"defaults many/1m 1", "parsing"},
		"no unit":                       {"defaults 1/60 1", "missing unit"},
		"more than there is":            {"defaults 1/1m 1 1", "parsing"},
		"a name with a space":           {" 1/1m 1", `bucket ""`},
		"a name that is a path":         {"a/b 1/1m 1", `bucket "a/b"`},
		"no calls":                      {"defaults 0/1m 1", "requests: 0"},
		"no bucket":                     {"defaults 1/1m 0", "burst: 0"},
		"too many calls":                {"defaults 1000001/1m 1", "requests: 1000001"},
		"too short a time":              {"defaults 1/999ms 1", "per: 999ms"},
		"too long a time":               {"defaults 1/61m 1", "per: 1h1m0s"},
		"a bucket that is never filled": {"defaults 1/1m 61", "61 calls come back in 1h1m0s, which is more than 1h0m0s"},
		"a negative time":               {"defaults 1/-1m 1", "per: -1m0s"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l, err := ratelimit.Parse(tt.text)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !l.IsZero() {
				t.Errorf("got %+v, %v; want %q", l, err, tt.want)
			}
		})
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range []string{"", "defaults 60/1m0s 120", "operations.listLive 1/1h 1", "a 1/1s 4294967296", "a  1/1s", "a 1/1s 1\n"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		l, err := ratelimit.Parse(s)
		if err != nil {
			return
		}
		if l.Interval() <= 0 || l.Refill() <= 0 || l.Refill() > ratelimit.MaxRefill {
			t.Errorf("%q gives %+v, which returns a call in %s and all in %s", s, l, l.Interval(), l.Refill())
		}
		if again, err := ratelimit.Parse(l.String()); err != nil || again != l {
			t.Errorf("%q gives %+v, and that %+v, %v", s, l, again, err)
		}
	})
}
