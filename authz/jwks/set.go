// Package jwks owns the public keys of one issuer of tokens: where they are
// read, for how long they hold, and whether a token was signed with one of
// them. What a token says is for others to judge.
package jwks

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/token"
)

// How often keys are read. They are read by Run alone, one reading at a time.
const (
	// Refresh is the time from one reading to the next: for so long a key that
	// the issuer withdrew may still count.
	Refresh = 5 * time.Minute
	// Spacing is the least time between the beginnings of two readings, whatever
	// tokens are sent: the issuer hears from a flood of made-up keys no more often.
	Spacing = 10 * time.Second
	// firstSpacing takes its place while no keys are known, as nobody can sign in
	// meanwhile.
	firstSpacing = time.Second
	// FetchTimeout bounds one reading.
	FetchTimeout = 5 * time.Second
	// maxWaiting bounds the calls that wait for a reading. Those beyond get the
	// answer of the keys that are known.
	maxWaiting = 256
)

// The verdicts on a token that is not proved to be its issuer's.
var (
	// ErrSignature: no key of the issuer made this signature, or what was sent is
	// no signed token of a form and algorithm that is accepted.
	ErrSignature = errors.New("the token is not signed by its issuer")
	// ErrUnknownKey: the issuer has no key of the name that the token gives, or had
	// none when it was last asked, at most Spacing ago. While the issuer is away
	// that is what it said before.
	ErrUnknownKey = errors.New("the token's key is none of its issuer's")
	// ErrNoKeys: no keys were ever read, so there is no verdict.
	ErrNoKeys = errors.New("the issuer's keys are not known")
)

// Config is what a Set needs.
type Config struct {
	// Name says in logs and metrics whose keys they are.
	Name   string
	Source Source
	// Metrics may be nil.
	Metrics *Metrics
}

// Set is the key set of one issuer. It is safe for concurrent use.
//
// It knows no keys until Run has read them. A reading that fails changes
// nothing: the keys that were read last stay, and log and metrics say so.
type Set struct {
	name    string
	source  Source
	metrics metrics
	kick    chan struct{}
	shares  shares

	mu      sync.Mutex
	keys    *keyring // nil until the first reading
	reading *reading // under way or asked for; nil when neither
	began   time.Time
	waiting int
	failing bool
}

// reading is one fetch. done is closed when it has ended.
type reading struct{ done chan struct{} }

// New gives a Set that has no keys yet.
func New(c Config) *Set {
	s := &Set{name: c.Name, source: c.Source, kick: make(chan struct{}, 1), shares: newShares()}
	s.metrics = c.Metrics.of(c.Name, s)
	return s
}

// Run reads the keys now, then every Refresh, and earlier when a token names an
// unknown key, until ctx ends. It must run exactly once.
func (s *Set) Run(ctx context.Context) {
	for {
		next := s.read(ctx)
		select {
		case <-ctx.Done():
			return
		case <-s.kick:
		case <-time.After(next):
		}
	}
}

// Verify says whether a key of the issuer signed the token, and gives the
// token's payload if so. A token whose key is not known waits for a reading of the
// keys for at most news; who waits for that keeps nobody from having a signature
// verified. As many signatures are verified at once as there are cores, and as
// many more for writes; the rest wait for their turn until ctx ends.
//
// The error is ErrSignature, ErrUnknownKey or ErrNoKeys, possibly wrapped, or
// another one where the signature got no turn.
func (s *Set) Verify(ctx context.Context, t token.Token, p authn.Purpose, news time.Duration) ([]byte, error) {
	signed, err := parse(t)
	if err != nil {
		return nil, err
	}
	keys := s.current()
	if !keys.knows(signed.kid) {
		keys = s.news(ctx, news)
	}
	switch {
	case keys == nil:
		return nil, ErrNoKeys
	case !keys.knows(signed.kid):
		return nil, ErrUnknownKey
	}
	turn := s.shares.of(p)
	if err := turn.take(ctx); err != nil {
		return nil, err
	}
	defer turn.give()
	return keys.verify(signed)
}

// Known says whether any keys were ever read.
func (s *Set) Known() bool { return s.current() != nil }

func (s *Set) current() *keyring {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.keys
}

func (s *Set) news(ctx context.Context, wait time.Duration) *keyring {
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	return s.ask(ctx)
}

// ask has the keys read again, unless that was done just now, and gives what is
// known then.
func (s *Set) ask(ctx context.Context) *keyring {
	s.mu.Lock()
	r := s.demand()
	if r == nil || s.waiting >= maxWaiting {
		defer s.mu.Unlock()
		return s.keys
	}
	s.waiting++
	s.mu.Unlock()
	select {
	case <-r.done:
	case <-ctx.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting--
	return s.keys
}

// demand gives the reading that is under way, or asks for one if it is time.
// s.mu is held.
func (s *Set) demand() *reading {
	if s.reading != nil {
		return s.reading
	}
	if !s.began.IsZero() && time.Since(s.began) < s.spacing() {
		return nil
	}
	s.reading = &reading{done: make(chan struct{})}
	s.kick <- struct{}{} // has room: only the one who asks for a reading sends
	return s.reading
}

func (s *Set) spacing() time.Duration {
	if s.keys == nil {
		return firstSpacing
	}
	return Spacing
}

// read reads the keys once and says when to do it again.
func (s *Set) read(ctx context.Context) time.Duration {
	r := s.begin()
	fetch, cancel := context.WithTimeout(ctx, FetchTimeout)
	keys, err := load(fetch, s.source)
	cancel()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.reading = nil
	close(r.done)
	if err != nil {
		if ctx.Err() == nil {
			s.failed(err)
		}
		return s.spacing()
	}
	s.took(keys)
	return Refresh
}

// begin takes on the reading that was asked for, or one of its own accord.
func (s *Set) begin() *reading {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case <-s.kick: // this reading is the answer to it
	default:
	}
	if s.reading == nil {
		s.reading = &reading{done: make(chan struct{})}
	}
	s.began = time.Now()
	return s.reading
}

// failed says that there is no news of the keys. s.mu is held.
func (s *Set) failed(err error) {
	s.metrics.failed.Inc()
	if !s.failing {
		slog.Error("the issuer's keys cannot be read; those that were read last stay in force", "issuer", s.name, "known", s.keys.size(), "error", err)
	}
	s.failing = true
}

// took puts keys that were read in force. s.mu is held.
func (s *Set) took(keys *keyring) {
	s.metrics.read.Inc()
	if s.failing || !keys.same(s.keys) {
		slog.Info("the issuer's keys were read", "issuer", s.name, "keys", keys.names(), "unusable", keys.unusable)
	}
	s.failing = false
	keys.read = time.Now()
	s.keys = keys
}
