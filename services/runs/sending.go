package runs

import (
	"context"
	"fmt"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/identity"
)

// freeBytes is how large a body is that is always sent: such bodies are many, and
// together less than what the edge's connections take.
const freeBytes = 64 << 10

// sending bounds what answers hold until their callers have taken them, in bytes. The
// cache forgets a body that is still on its way, so those who ask for one after the
// other and take none would have all of them in memory. A body that many are sent is
// held once. It is safe for concurrent use.
type sending struct {
	most, each int64 // of all callers, and of one

	mu      sync.Mutex
	bytes   int64
	bodies  map[any]int // how many callers' they are
	shares  map[share]int
	callers map[string]int64 // bytes
}

// share is a body that a caller is sent, perhaps in several calls.
type share struct {
	caller string
	body   any
}

// newSending gives a bound of which one caller takes half.
func newSending(most int64) *sending {
	return &sending{most: most, each: most / 2, bodies: map[any]int{}, shares: map[share]int{}, callers: map[string]int64{}}
}

// begin counts a body that a caller is sent until end is called, once. Bodies of the
// same key are the same. The error is cache.ErrBusy.
func (s *sending) begin(caller string, body any, bytes int64) (end func(), err error) {
	if bytes < freeBytes {
		return func() {}, nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	one := share{caller, body}
	if s.shares[one] == 0 {
		all := bytes
		if s.bodies[body] > 0 {
			all = 0
		}
		if err := s.take(caller, bytes, all); err != nil {
			return nil, err
		}
		s.bodies[body]++
	}
	s.shares[one]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.shares[one]--; s.shares[one] > 0 {
			return
		}
		delete(s.shares, one)
		all := int64(0)
		if s.bodies[body]--; s.bodies[body] == 0 {
			delete(s.bodies, body)
			all = bytes
		}
		s.give(caller, bytes, all)
	}, nil
}

// take counts bytes for a caller, and those that nobody else holds for all.
func (s *sending) take(caller string, own, all int64) error {
	if s.bytes+all > s.most || s.callers[caller]+own > s.each {
		return fmt.Errorf("%d bytes of answers are under way, %d of this caller: %w", s.bytes, s.callers[caller], cache.ErrBusy)
	}
	s.bytes += all
	s.callers[caller] += own
	return nil
}

func (s *sending) give(caller string, own, all int64) {
	s.bytes -= all
	if s.callers[caller] -= own; s.callers[caller] == 0 {
		delete(s.callers, caller)
	}
}

// held gives the bytes that are held now.
func (s *sending) held() float64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return float64(s.bytes)
}

// newUnsent counts answers that were not sent, and shows what is held.
func newUnsent(reg prometheus.Registerer, s *sending) *prometheus.CounterVec {
	c := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_runs_unsent_answers_total",
		Help: "Answers that were at hand and were not sent whole: refused, since too much is being sent, or cut, since their callers took no more.",
	}, []string{"result"})
	for _, result := range []string{"refused", "cut"} {
		c.WithLabelValues(result)
	}
	reg.MustRegister(c, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "glidepath_runs_sending_bytes", Help: "What answers hold in memory until their callers have taken them.",
	}, s.held))
	return c
}

// growing is a body that is written before it is sent, and held meanwhile. It is for
// one goroutine, and ends.
type growing struct {
	of     *sending
	caller string
	out    *answer.Writer
	bytes  int64
}

// Write takes the next bytes. The error is cache.ErrBusy where there is no room for
// what they have become.
func (g *growing) Write(p []byte) (int, error) {
	n, err := g.out.Write(p)
	if err != nil {
		return n, err
	}
	more := g.out.Held() - g.bytes
	if more <= 0 || g.out.Held() < freeBytes {
		return n, nil
	}
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	if err := g.of.take(g.caller, more, more); err != nil {
		return 0, err
	}
	g.bytes += more
	return n, nil
}

// end gives everything back.
func (g *growing) end() {
	g.of.mu.Lock()
	defer g.of.mu.Unlock()
	g.of.give(g.caller, g.bytes, g.bytes)
	g.bytes = 0
}

// reader stands for a caller where many may wait for what is read.
const reader = ""

// callerOf tells callers apart, and the people that one calls for.
func callerOf(ctx context.Context) string {
	who, ok := identity.FromContext(ctx)
	if !ok {
		who = &identity.Claims{}
	}
	return who.Subject + "\x00" + identity.FoldPerson(who.OnBehalfOf)
}
