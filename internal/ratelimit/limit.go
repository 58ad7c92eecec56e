// Package ratelimit owns what a rate limit is, and how xds tells authz of one:
// the route policy says it, a route of the edge carries it, authz counts by it.
package ratelimit

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// The names under which a route tells authz of its limits: of each caller, or
// of each person of a caller that acts for people; and of a caller in all.
const (
	Extension       = "limit"
	CallerExtension = "callerLimit"
)

// The bounds of a limit. MaxRefill bounds how long an empty bucket takes to
// fill, and so how long anything has to be remembered of a caller.
const (
	MinPer      = time.Second
	MaxPer      = time.Hour
	MaxRequests = 1_000_000
	MaxRefill   = time.Hour
)

// Limit is a bucket of calls: it holds Burst of them, and Requests come back to
// it evenly in each Per. The zero Limit is none.
type Limit struct {
	// Bucket names what is counted together: the calls of all routes whose
	// limits have the same name take from the same bucket.
	Bucket   string
	Requests uint32
	Per      time.Duration
	Burst    uint32
}

// maxBucket is the length of the longest name of a bucket.
const maxBucket = 100

// plain says whether name is letters, digits, dots and hyphens. It is asked for
// every limited call, where a regular expression would be most of the cost.
func plain(name string) bool {
	for i := range len(name) {
		switch c := name[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '.', c == '-':
		default:
			return false
		}
	}
	return name != "" && len(name) <= maxBucket
}

// IsZero says that there is no limit.
func (l Limit) IsZero() bool { return l == Limit{} }

// Interval is the time in which one call comes back.
func (l Limit) Interval() time.Duration { return l.Per / time.Duration(l.Requests) }

// Refill is the time in which an empty bucket fills.
func (l Limit) Refill() time.Duration { return l.Interval() * time.Duration(l.Burst) }

// Validate reports every fault of a limit together. The zero Limit has some.
func (l Limit) Validate() error {
	var errs []error
	if !plain(l.Bucket) {
		errs = append(errs, fmt.Errorf("bucket %q is not a plain name", l.Bucket))
	}
	if l.Per < MinPer || l.Per > MaxPer {
		errs = append(errs, fmt.Errorf("per: %s is not between %s and %s", l.Per, MinPer, MaxPer))
	}
	for _, n := range []struct {
		name  string
		value uint32
	}{{"requests", l.Requests}, {"burst", l.Burst}} {
		if n.value < 1 || n.value > MaxRequests {
			errs = append(errs, fmt.Errorf("%s: %d is not between 1 and %d", n.name, n.value, MaxRequests))
		}
	}
	if len(errs) == 0 && l.Refill() > MaxRefill {
		errs = append(errs, fmt.Errorf("burst: at this rate %d calls come back in %s, which is more than %s", l.Burst, l.Refill(), MaxRefill))
	}
	return errors.Join(errs...)
}

// String gives the form that Parse reads: bucket, requests/per, burst.
func (l Limit) String() string {
	return fmt.Sprintf("%s %d/%s %d", l.Bucket, l.Requests, l.Per, l.Burst)
}

// Parse reads what String gives. The limit is a valid one, or there is an error.
func Parse(s string) (Limit, error) {
	bucket, rest, _ := strings.Cut(s, " ")
	rate, burst, _ := strings.Cut(rest, " ")
	requests, per, _ := strings.Cut(rate, "/")
	l := Limit{Bucket: bucket}
	n, err1 := strconv.ParseUint(requests, 10, 32)
	d, err2 := time.ParseDuration(per)
	b, err3 := strconv.ParseUint(burst, 10, 32)
	l.Requests, l.Per, l.Burst = uint32(n), d, uint32(b)
	if err := errors.Join(err1, err2, err3); err != nil {
		return Limit{}, fmt.Errorf("reading the limit %q: %w", s, err)
	}
	if err := l.Validate(); err != nil {
		return Limit{}, fmt.Errorf("reading the limit %q: %w", s, err)
	}
	return l, nil
}
