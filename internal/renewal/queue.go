package renewal

import (
	"container/heap"
	"context"
	"time"

	"hangar.io/glidepath/internal/identity"
)

// stream is an open stream. The Keeper's lock guards what changes.
type stream struct {
	claims *identity.Claims // as decided when it was opened
	cancel context.CancelCauseFunc

	ticket   string
	due      time.Time // of the next renewal; zero while one waits or is under way
	deadline time.Time // by which one must be granted
	expiry   time.Time // of the caller's token; zero when it has none
	index    int       // in the queue; -1 once it is over
}

// next is when there is something to do about it.
func (s *stream) next() time.Time {
	at := s.deadline
	for _, t := range [...]time.Time{s.due, s.expiry} {
		if !t.IsZero() && t.Before(at) {
			at = t
		}
	}
	return at
}

// over says why the stream ends now; nil when it does not.
func (s *stream) over(now time.Time) *EndError {
	switch {
	case !s.expiry.IsZero() && !now.Before(s.expiry):
		return &EndError{Reason: Expired}
	case !now.Before(s.deadline):
		return &EndError{Reason: Unrenewed}
	}
	return nil
}

// queue has the streams by what is to be done next. It is a heap.
type queue []*stream

func (q queue) Len() int           { return len(q) }
func (q queue) Less(i, j int) bool { return q[i].next().Before(q[j].next()) }
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

// Push is for container/heap.
func (q *queue) Push(x any) {
	s, ok := x.(*stream)
	if !ok {
		return // nobody pushes anything else
	}
	s.index = len(*q)
	*q = append(*q, s)
}

// Pop is for container/heap.
func (q *queue) Pop() any {
	last := len(*q) - 1
	s := (*q)[last]
	(*q)[last] = nil
	*q = (*q)[:last]
	s.index = -1
	return s
}

func (q *queue) add(s *stream) { heap.Push(q, s) }

// fix puts a stream in its place after a change of its times.
func (q *queue) fix(s *stream) { heap.Fix(q, s.index) }

func (q *queue) remove(s *stream) {
	if s.index >= 0 {
		heap.Remove(q, s.index)
	}
}
