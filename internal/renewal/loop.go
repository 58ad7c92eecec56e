package renewal

import (
	"context"
	"log/slog"
	"time"

	"hangar.io/glidepath/internal/identity"
)

const (
	// maxBatches bounds the requests under way.
	maxBatches = 4
	// gather is how much earlier than due a stream is renewed for the company
	// of another.
	gather = time.Second
	// idle is how long the loop waits when there is no stream.
	idle = time.Minute
	// After a request without an answer none is made for a while, which grows
	// from firstPause to lastPause: an authz that is back within 8 s has to be asked
	// within 10, which is what Grace leaves of a stream that was due.
	firstPause = 250 * time.Millisecond
	lastPause  = time.Second
	// again is when a stream about which nobody could tell is renewed again.
	again = 3 * time.Second
	// urgent bounds the time in which all streams are renewed once the epoch
	// has changed.
	urgent = 2 * time.Second
	// settled is how soon after a change of the epoch another one counts; each
	// that follows closely doubles it, up to Every. While a list comes to several
	// authz, each may have its own epoch.
	settled = 3 * time.Second
)

// Run renews streams until ctx ends. From then on streams are neither renewed
// nor ended here: whoever serves them ends them.
func (k *Keeper) Run(ctx context.Context) {
	if k.client == nil {
		return
	}
	defer k.client.close()
	defer k.work.Wait()
	k.work.Go(func() { k.followEpoch(ctx) })
	timer := time.NewTimer(idle)
	defer timer.Stop()
	for {
		timer.Reset(k.step(ctx))
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-k.wake:
		}
	}
}

// step ends what is over, sends what is due, and says when to look again.
func (k *Keeper) step(ctx context.Context) time.Duration {
	k.mu.Lock()
	defer k.mu.Unlock()
	now := time.Now()
	k.sort(now)
	if now.Before(k.paused) {
		return min(k.paused.Sub(now), k.untilNext(now))
	}
	most := maxBatches
	if k.failures > 0 {
		most = 1 // it tries for all
	}
	for k.batches < most {
		batch := k.take()
		if len(batch) == 0 {
			break
		}
		k.batches++
		k.work.Go(func() { k.renew(ctx, batch) })
	}
	return k.untilNext(now)
}

// sort ends what is over and puts what is due in line.
func (k *Keeper) sort(now time.Time) {
	for len(k.streams) > 0 {
		s := k.streams[0]
		if why := s.over(now); why != nil {
			k.end(s, why)
			continue
		}
		if s.due.IsZero() || s.due.After(now.Add(gather)) {
			return
		}
		s.due = time.Time{}
		k.streams.fix(s)
		k.waiting = append(k.waiting, s)
	}
}

func (k *Keeper) untilNext(now time.Time) time.Duration {
	if len(k.streams) == 0 {
		return idle
	}
	return max(k.streams[0].next().Sub(now), 0)
}

// pending is a stream whose ticket is being shown. The ticket is read under the
// lock, and not again.
type pending struct {
	stream *stream
	ticket string
}

// take gives the next batch of those in line that are still open.
func (k *Keeper) take() []pending {
	var batch []pending
	for len(k.waiting) > 0 && len(batch) < MaxBatch {
		s := k.waiting[0]
		k.waiting[0] = nil
		k.waiting = k.waiting[1:]
		if s.index >= 0 {
			batch = append(batch, pending{stream: s, ticket: s.ticket})
		}
	}
	return batch
}

// renew shows the tickets of a batch and does what is answered.
func (k *Keeper) renew(ctx context.Context, batch []pending) {
	tickets := make([]string, len(batch))
	for i, p := range batch {
		tickets[i] = p.ticket
	}
	asked := time.Now()
	answers, err := k.client.renew(ctx, tickets)
	granted := make([]*identity.Claims, len(batch))
	for i, a := range answers {
		granted[i] = k.verify(ctx, batch[i].stream, a)
	}
	k.mu.Lock()
	k.batches--
	if err != nil {
		k.fail(ctx, batch, err)
	} else {
		k.failures, k.paused = 0, time.Time{}
		for i, a := range answers {
			k.apply(batch[i].stream, a, granted[i], asked)
		}
	}
	k.mu.Unlock()
	k.poke()
}

// fail puts a batch that had no answer first in line again.
func (k *Keeper) fail(ctx context.Context, batch []pending, err error) {
	k.metrics.failed.Inc()
	if k.failures == 0 && ctx.Err() == nil {
		slog.WarnContext(ctx, "streams cannot be renewed, trying again", "error", err, "streams", len(k.streams))
	}
	pause := min(firstPause<<min(k.failures, 10), lastPause)
	k.failures++
	k.paused = time.Now().Add(pause/2 + jitter(pause/2))
	line := make([]*stream, 0, len(batch)+len(k.waiting))
	for _, p := range batch {
		line = append(line, p.stream)
	}
	k.waiting = append(line, k.waiting...)
}

// apply does what was answered about a stream.
func (k *Keeper) apply(s *stream, a Answer, granted *identity.Claims, asked time.Time) {
	if s.index < 0 {
		return // it has ended meanwhile
	}
	switch {
	case granted != nil:
		k.metrics.answers.WithLabelValues(resultGranted).Inc()
		if a.Ticket != "" && len(a.Ticket) <= MaxTicketBytes {
			s.ticket = a.Ticket
		}
		s.granted(asked, granted)
		if asked.Before(k.hurried) {
			// It may have been decided before the list was changed.
			s.due = time.Now().Add(jitter(urgent))
		}
	case a.Identity == "" && a.Reason != "":
		k.metrics.answers.WithLabelValues(resultRefused).Inc()
		k.end(s, &EndError{Reason: a.Reason.known(), Rule: a.Rule})
		return
	default:
		k.metrics.answers.WithLabelValues(resultUnanswered).Inc()
		s.due = time.Now().Add(again/2 + jitter(again))
	}
	k.streams.fix(s)
}

// known keeps a reason that nobody has heard of from callers and metrics.
func (r Reason) known() Reason {
	switch r {
	case Expired, Revoked, Lifetime, Unrenewed:
		return r
	}
	return Revoked
}

// verify gives the identity of a granted renewal, or nil: one that is not signed
// by authz for this backend, or is not about the same, grants nothing.
func (k *Keeper) verify(ctx context.Context, s *stream, a Answer) *identity.Claims {
	if a.Identity == "" || a.Reason != "" {
		return nil
	}
	c, err := k.verifier.Verify(a.Identity)
	if err != nil {
		slog.ErrorContext(ctx, "a renewal with an identity that is none", "rule", "renewal", "error", err)
		return nil
	}
	o := s.claims
	if c.Subject != o.Subject || c.OnBehalfOf != o.OnBehalfOf || c.Op != o.Op || c.App != o.App || c.Namespace != o.Namespace || c.NamespaceUID != o.NamespaceUID {
		slog.ErrorContext(ctx, "a renewal with an identity of something else", "rule", "renewal")
		return nil
	}
	return c
}
