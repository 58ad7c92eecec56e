package policy

import (
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/ratelimit"
)

// Policy is a route policy that was found good. In the zero value
// every setting has its default. It is not changed once made.
type Policy struct {
	defaults   Settings
	backends   map[string]Settings
	operations map[string]Settings
}

// Settings are what can be said at each level. A zero field says nothing, so
// that the next level's counts.
type Settings struct {
	// Timeout bounds a call, from the end of its request to the end of its
	// answer. Streams have none.
	Timeout time.Duration
	// RateLimit bounds the calls of each caller, or of each person that a
	// caller acts for; CallerRateLimit those of a caller in all.
	RateLimit, CallerRateLimit RateLimit
}

// RateLimit is what one level says of a limit. What is limited at one level is
// counted together: the calls of all operations that have their limit from
// there.
type RateLimit struct {
	// Said tells a limit that a level switched off from one that it says
	// nothing of.
	Said bool
	// Limit is zero where there is none.
	Limit ratelimit.Limit
}

// DefaultTimeout is the timeout where the policy says nothing. It leaves room
// for a cold read of a slow source.
const DefaultTimeout = 30 * time.Second

// LogTimeout is that of getRunLogs: a log that is too large for runs to keep is
// read while its caller takes it, for up to 90 s.
const LogTimeout = 2 * time.Minute

// The bounds of a timeout: less than the smallest would fail healthy calls,
// and what waits longer than the longest is better made a stream.
const (
	MinTimeout = 100 * time.Millisecond
	MaxTimeout = 5 * time.Minute
)

// For gives the settings in force for an operation, with every field set but
// those that do not apply to it. There is no rate limit that nobody asked for:
// which number protects one cluster and does not hurt another, only its
// operators know.
func (p Policy) For(op api.Operation) Settings {
	out := Settings{Timeout: DefaultTimeout}
	for _, s := range []Settings{p.defaults, builtIn(op), p.backends[op.Backend], p.operations[op.ID]} {
		if s.Timeout != 0 {
			out.Timeout = s.Timeout
		}
		if s.RateLimit.Said {
			out.RateLimit = s.RateLimit
		}
		if s.CallerRateLimit.Said {
			out.CallerRateLimit = s.CallerRateLimit
		}
	}
	if op.Stream {
		out.Timeout = 0
	}
	return out
}

// builtIn are the settings of an operation that the defaults do not fit. They
// yield to a policy that names the operation or its backend, and not to its
// defaults: whoever wants calls to be short in general does not ask for logs
// that break off.
func builtIn(op api.Operation) Settings {
	if op.ID == "getRunLogs" {
		return Settings{Timeout: LogTimeout}
	}
	return Settings{}
}
