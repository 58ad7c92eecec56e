package renewal

import (
	"context"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/internal/streamquota"
)

// Config is what a Keeper needs. All fields are required.
type Config struct {
	Options Options
	// Verifier verifies the identities of renewals, as those of calls.
	Verifier *identity.Verifier
	// Quota bounds the streams of one caller and of one person.
	Quota   *streamquota.Quota
	Metrics prometheus.Registerer
}

// Keeper keeps the streams of a process open for as long as their callers may
// have them: one loop and a few requests at a time, however many there are. It
// is safe for concurrent use.
type Keeper struct {
	client   *client
	verifier *identity.Verifier
	quota    *streamquota.Quota
	metrics  *metrics
	wake     chan struct{} // has room for one
	work     sync.WaitGroup

	mu       sync.Mutex
	streams  queue     // every open stream
	waiting  []*stream // those whose renewal is due, in their turn
	batches  int       // under way
	failures int       // requests without an answer in a row
	paused   time.Time // until when none is made, after one without an answer
	hurried  time.Time // when all streams were last made due at once
}

// New gives a Keeper whose Run renews streams. Without an URL it refuses every
// stream: one that nobody renews would outlive the right to it.
func New(cfg Config) (*Keeper, error) {
	k := &Keeper{verifier: cfg.Verifier, quota: cfg.Quota, wake: make(chan struct{}, 1)}
	k.metrics = newMetrics(cfg.Metrics, func() float64 { return float64(k.Open()) })
	if len(cfg.Options.URLs) == 0 {
		return k, nil
	}
	var err error
	k.client, err = newClient(cfg.Options)
	return k, err
}

// Open is how many streams are open.
func (k *Keeper) Open() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.streams)
}

// Keep begins to keep the stream of a call that identity.Require let through.
// The context it gives ends with the call's, or when the stream may not go on:
// then EndOf gives why. Call release when the stream has ended, for whatever
// reason.
//
// The error is the answer to the call, before anything is sent: GP-EDGE-401
// without a ticket, GP-API-429 over the quota, GP-API-503 where nobody renews.
func (k *Keeper) Keep(r *http.Request) (ctx context.Context, release func(), err error) {
	tickets := r.Header.Values(Header)
	r.Header.Del(Header)
	claims, ok := identity.FromContext(r.Context())
	if !ok || len(tickets) != 1 || tickets[0] == "" || len(tickets[0]) > MaxTicketBytes {
		return nil, nil, problem.New(problem.EdgeUnauthorized, "this stream carries no ticket of the edge")
	}
	if k.client == nil {
		return nil, nil, problem.New(problem.Busy, "this replica is not set up to serve streams").
			WithHint("poll; an operator must say where streams are renewed")
	}
	uncount, err := k.quota.Open(claims.Subject, claims.OnBehalfOf)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	s := &stream{claims: claims, cancel: cancel, ticket: tickets[0]}
	k.mu.Lock()
	now := time.Now()
	s.granted(now, claims)
	if now.Sub(k.hurried) < settled {
		// It may have been decided before the list was changed.
		s.due = now.Add(jitter(urgent))
	}
	k.streams.add(s)
	k.mu.Unlock()
	k.poke()
	return ctx, func() {
		k.mu.Lock()
		k.streams.remove(s)
		k.mu.Unlock()
		cancel(nil)
		uncount()
	}, nil
}

// granted sets the times of a stream that may go on by a decision of which the
// identity was asked for at a time.
func (s *stream) granted(asked time.Time, by *identity.Claims) {
	s.deadline = asked.Add(Grace)
	s.due = asked.Add(Every - jitter(Every/3))
	s.expiry = time.Time{}
	if by.TokenExpiry != nil {
		// By authz's own clock, which may not be this one.
		s.expiry = asked.Add(by.TokenExpiry.Sub(by.IssuedAt.Time))
	}
}

// jitter gives a random time below most.
func jitter(most time.Duration) time.Duration { return rand.N(most) }

// poke has the loop look again.
func (k *Keeper) poke() {
	select {
	case k.wake <- struct{}{}:
	default: // it will look anyway
	}
}

// end ends a stream. The lock is held.
func (k *Keeper) end(s *stream, why *EndError) {
	k.streams.remove(s)
	k.metrics.ended.WithLabelValues(string(why.Reason)).Inc()
	s.cancel(why)
}
