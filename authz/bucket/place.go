package bucket

import (
	"hash/maphash"
	"time"

	"hangar.io/glidepath/internal/ratelimit"
)

// slot tells the buckets of one caller under one limit apart.
type slot uint8

const (
	inAll  slot = iota // of the caller with all of its people
	own                // of the caller for nobody
	crowd              // of its people for whom there was no room
	slots              // how many a caller has
	person             // of a person
)

// caller holds the buckets of one caller under one limit: when each is full
// again.
type caller struct {
	full   [slots]time.Duration
	people map[key]time.Duration // nil without any
	sweep  sweep
}

// strangers is how many buckets those callers share for whom there is no room.
// Which of them a caller shares nobody can choose, so that a noisy one meets
// few others.
const strangers = 64

// buckets are those of one limit.
type buckets struct {
	callers   map[key]*caller
	strangers [strangers]caller
	sweep     sweep
}

// place is where a call is counted, and until when the bucket is not full: now,
// and once the call has taken from it.
type place struct {
	in         *buckets
	of         *caller // nil for one that nothing is kept of yet
	caller     key
	slot       slot
	person     key
	shared     bool
	full, then time.Duration
}

// widen gives the limit that is in force at a place.
func (p *place) widen(l ratelimit.Limit) ratelimit.Limit {
	if p.shared {
		l.Requests *= Crowd
		l.Burst *= Crowd
	}
	return l
}

// take counts one call at its place, or gives the time until it could be.
func (p *place) take(now time.Duration, l ratelimit.Limit) (wait time.Duration) {
	empty := now + l.Refill()
	// Under a limit that was changed, the bucket is empty at worst.
	p.full = min(p.full, empty)
	p.then = max(p.full, now) + l.Interval()
	return max(0, p.then-empty)
}

// find gives the place of a bucket: its own, or one that is shared when there
// is no room for another.
func (t *Table) find(now time.Duration, limit string, name key, s slot, who string) place {
	in := t.limits[limit]
	if in == nil {
		in = &buckets{callers: map[key]*caller{}}
		t.limits[limit] = in
	}
	p := place{in: in, of: in.callers[name], caller: name, slot: s}
	if p.of == nil && !t.roomForCaller(now, in) {
		p.of, p.shared = &in.strangers[name[0]%strangers], true
	}
	if who != "" && !p.shared {
		p.slot, p.person = person, t.keyOf(who)
		if p.of != nil {
			full, ok := p.of.people[p.person]
			p.full = full
			if !ok && !t.roomForPerson(now, p.of) {
				p.slot, p.shared = crowd, true
			}
		}
	}
	if p.of != nil && p.slot != person {
		p.full = p.of.full[p.slot]
	}
	if p.shared {
		t.crowded++
	}
	return p
}

// keep remembers until when a bucket is not full.
func (t *Table) keep(p place, full time.Duration) {
	if p.of == nil {
		// The call's other place may have made it.
		p.of = p.in.callers[p.caller]
	}
	if p.of == nil {
		p.of = &caller{}
		p.in.callers[p.caller] = p.of
		t.kept++
	}
	if p.slot != person {
		p.of.full[p.slot] = full
		return
	}
	if p.of.people == nil {
		p.of.people = map[key]time.Duration{}
	}
	before := len(p.of.people)
	p.of.people[p.person] = full
	t.kept += len(p.of.people) - before
}

func (t *Table) keyOf(name string) key {
	return key{maphash.String(t.seeds[0], name), maphash.String(t.seeds[1], name)}
}
