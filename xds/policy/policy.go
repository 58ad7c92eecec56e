package policy

import (
	"time"

	"hangar.io/glidepath/api"
)

// Policy is a route policy that was found good. The zero value is the policy
// of an empty file: every setting has its default. It is not changed once
// made.
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
}

// DefaultTimeout is the timeout where the policy says nothing. It leaves room
// for a cold read of a slow source.
const DefaultTimeout = 30 * time.Second

// The bounds of a timeout: less than the smallest would fail healthy calls,
// and what waits longer than the longest is better made a stream.
const (
	MinTimeout = 100 * time.Millisecond
	MaxTimeout = 5 * time.Minute
)

// For gives the settings in force for an operation, with every field set but
// those that do not apply to it.
func (p Policy) For(op api.Operation) Settings {
	out := Settings{Timeout: DefaultTimeout}
	for _, s := range []Settings{p.defaults, p.backends[op.Backend], p.operations[op.ID]} {
		if s.Timeout != 0 {
			out.Timeout = s.Timeout
		}
	}
	if op.Stream {
		out.Timeout = 0
	}
	return out
}
