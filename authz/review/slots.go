package review

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
)

// class is a kind of question with a share of its own of what the API server is
// asked at once. One kind cannot take what belongs to another, so a flood of
// bad tokens slows bad tokens down and nothing else.
type class int

const (
	// unknownRead and unknownWrite are for tokens that were not accepted here
	// before: whoever floods the gateway with made-up tokens is in these.
	unknownRead class = iota
	unknownWrite
	// read and write are for tokens that were, and for what authenticated
	// callers may do.
	read
	write
	classes
)

var classNames = [classes]string{"unknown_read", "unknown_write", "read", "write"}

// Limits says how many questions may be under way at once, by class. The API
// server takes a few hundred on the one connection they all use.
type Limits struct {
	UnknownRead, UnknownWrite, Read, Write int
	// Waiting bounds how many more of each class may wait. What comes on top
	// is refused at once.
	Waiting int
}

// DefaultLimits are enough for some thousand answers a second from an API
// server that answers in milliseconds.
func DefaultLimits() Limits {
	return Limits{UnknownRead: 16, UnknownWrite: 16, Read: 64, Write: 64, Waiting: 512}
}

// Slots bounds the questions under way. It is safe for concurrent use.
type Slots struct {
	pools [classes]slotPool
}

type slotPool struct {
	slots      chan struct{}
	waiting    atomic.Int64
	maxWaiting int64
	shed       atomic.Uint64
}

// NewSlots gives slots of these limits. Every limit must be positive.
func NewSlots(l Limits) (*Slots, error) {
	s := new(Slots)
	for c, n := range [classes]int{l.UnknownRead, l.UnknownWrite, l.Read, l.Write} {
		if n <= 0 || l.Waiting <= 0 {
			return nil, fmt.Errorf("bounding reviews: no slots for class %s", classNames[c])
		}
		s.pools[c].slots = make(chan struct{}, n)
		s.pools[c].maxWaiting = int64(l.Waiting)
	}
	return s, nil
}

var errTooManyWaiting = errors.New("too many reviews are waiting already")

// take waits for a slot of c, at most until ctx ends. Whoever gets nil gives
// the slot back.
func (s *Slots) take(ctx context.Context, c class) error {
	p := &s.pools[c]
	select {
	case p.slots <- struct{}{}:
		return nil
	default:
	}
	if p.waiting.Add(1) > p.maxWaiting {
		p.waiting.Add(-1)
		p.shed.Add(1)
		return errTooManyWaiting
	}
	defer p.waiting.Add(-1)
	select {
	case p.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting to ask the API server: %w", ctx.Err())
	}
}

func (s *Slots) give(c class) { <-s.pools[c].slots }
