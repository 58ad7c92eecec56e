package decision

import (
	"context"
	"sync"
)

// batchReviews bounds the reviews that all batches have under way at once: far
// fewer than there are slots for reads, so that callers who ask what they may
// do leave room for those who do it. callerReviews bounds those of one caller,
// so that one who asks without end keeps no other waiting.
const (
	batchReviews  = 16
	callerReviews = 4
)

// lane has a place for each review of a batch under way. It is safe for
// concurrent use, and keeps nothing of a caller who has no review there.
type lane struct {
	all chan struct{}

	mu      sync.Mutex
	callers map[string]*share
}

// share is what one caller has of a lane.
type share struct {
	places chan struct{}
	users  int // reviews that have a place or wait for one
}

func newLane() *lane {
	return &lane{all: make(chan struct{}, batchReviews), callers: map[string]*share{}}
}

// enter waits for a place among the caller's and then among all: a caller waits
// there with no more reviews than it may have under way. Call leave once after
// the review. The error is that of ctx.
func (l *lane) enter(ctx context.Context, caller string) (leave func(), err error) {
	s := l.join(caller)
	if err := take(ctx, s.places); err != nil {
		l.part(caller, s)
		return nil, err
	}
	if err := take(ctx, l.all); err != nil {
		<-s.places
		l.part(caller, s)
		return nil, err
	}
	return func() {
		<-l.all
		<-s.places
		l.part(caller, s)
	}, nil
}

func take(ctx context.Context, places chan<- struct{}) error {
	select {
	case places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (l *lane) join(caller string) *share {
	l.mu.Lock()
	defer l.mu.Unlock()
	s := l.callers[caller]
	if s == nil {
		s = &share{places: make(chan struct{}, callerReviews)}
		l.callers[caller] = s
	}
	s.users++
	return s
}

func (l *lane) part(caller string, s *share) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if s.users--; s.users == 0 {
		delete(l.callers, caller)
	}
}
