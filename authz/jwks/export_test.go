package jwks

import "hangar.io/glidepath/authz/authn"

// MaxTurns is how many wait for a turn.
const MaxTurns = maxTurns

// TakeTurns takes all free turns of a purpose, until back is called.
func (s *Set) TakeTurns(p authn.Purpose) (back func()) {
	turn := s.shares.of(p)
	var taken int64
	for turn.sem.TryAcquire(1) {
		taken++
	}
	return func() { turn.sem.Release(taken) }
}
