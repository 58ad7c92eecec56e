// Package bucket counts the calls of callers against their limits. A caller
// that acts for people has a bucket for each of them, so that a noisy one
// spends nothing of the others' share, and one for all of its calls together
// where the policy says so.
//
// Of a bucket only the time is kept at which it is full again: one that is full
// needs no memory, and what is remembered stays true when the limit changes.
// What is kept is bounded, for each limit by itself. A caller over its bound, by
// naming ever more people, has those that are new counted together with each
// other; nothing that still counts is ever thrown away for it, so no flood of
// names frees anyone of a limit, and none takes the room of another caller.
package bucket

import (
	"hash/maphash"
	"sync"
	"time"

	"hangar.io/glidepath/internal/ratelimit"
)

// The bounds of a table, for each name of a limit. A caller takes 100 bytes and a
// person 50 (BenchmarkBytes), so that a limit takes 1 MB of callers at worst,
// and 1 MB for each caller that acts for people.
const (
	// DefaultCallers bounds the callers that are told apart.
	DefaultCallers = 10_000
	// DefaultPeople bounds the people of one caller that are told apart.
	DefaultPeople = 20_000
)

// Crowd is how many shares a bucket has that many use for want of room: its
// rate and its burst are so many times those of the limit. Whoever filled the
// room has had thousands, so a backend sees no difference; who is new and
// innocent does.
const Crowd = 100

// Config says how large a Table may grow. A zero field has its default.
type Config struct {
	Callers, People int
}

// Table holds the buckets of one edge. It is safe for concurrent use, starts no
// goroutine, and lives as long as its process: no other edge knows of it.
type Table struct {
	mostCallers, mostPeople int
	// Times are kept as what has passed since then, which no change of the
	// machine's clock moves.
	began time.Time
	// seeds make the keys: 128 bits that nobody outside can aim at, instead of
	// names as long as callers like.
	seeds [2]maphash.Seed

	mu sync.Mutex
	// limits are by their name, of which there are as many as the route policy
	// can say.
	limits  map[string]*buckets
	kept    int
	crowded uint64
}

type key [2]uint64

// Call is a call that is to be counted.
type Call struct {
	// Caller is the caller's user name, Person whom it acts for; empty for
	// nobody.
	Caller, Person string
	// Each is the limit of the person, or of the caller when it acts for
	// nobody. InAll is the caller's limit for all of its calls together. A zero
	// limit is none.
	Each, InAll ratelimit.Limit
}

// Refusal says why a call does not count.
type Refusal struct {
	// Limit is the one that is used up; InAll says that it is the caller's for
	// all of its calls, and Shared that it is Crowd times as wide, for many.
	Limit         ratelimit.Limit
	InAll, Shared bool
	// Wait is the time after which the call would be taken if nothing else
	// came in between. It is always positive.
	Wait time.Duration
}

// New gives an empty Table.
func New(c Config) *Table {
	t := &Table{
		mostCallers: c.Callers, mostPeople: c.People, began: time.Now(),
		seeds:  [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		limits: map[string]*buckets{},
	}
	if t.mostCallers <= 0 {
		t.mostCallers = DefaultCallers
	}
	if t.mostPeople <= 0 {
		t.mostPeople = DefaultPeople
	}
	return t
}

// Take counts a call against both of its limits, or against none of them: then
// it gives the refusal, and true. A refused call costs nothing, so that a
// caller which goes on asking waits no longer than one which does not.
func (t *Table) Take(c Call) (Refusal, bool) {
	if c.Each.IsZero() && c.InAll.IsZero() {
		return Refusal{}, false
	}
	now := time.Since(t.began)
	t.mu.Lock()
	defer t.mu.Unlock()
	var out Refusal
	places := make([]place, 0, 2)
	name := t.keyOf(c.Caller)
	for _, one := range [...]struct {
		limit ratelimit.Limit
		slot  slot
	}{{c.InAll, inAll}, {c.Each, own}} {
		if one.limit.IsZero() {
			continue
		}
		person := c.Person
		if one.slot == inAll {
			person = ""
		}
		p := t.find(now, one.limit.Bucket, name, one.slot, person)
		l := p.widen(one.limit)
		if wait := p.take(now, l); wait > out.Wait {
			out = Refusal{Limit: l, InAll: one.slot == inAll, Shared: p.shared, Wait: wait}
		}
		places = append(places, p)
	}
	for _, p := range places {
		switch {
		case out.Wait == 0:
			t.keep(p, p.then)
		case p.full > now:
			// What was said of the wait has to stay true.
			t.keep(p, p.full)
		}
	}
	return out, out.Wait > 0
}

// Len gives the number of callers and people of whom something is kept, under
// each limit by itself.
func (t *Table) Len() int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.kept
}

// Crowded gives the number of calls that were looked for in a bucket that many
// share, because there was no room for one of their own.
func (t *Table) Crowded() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.crowded
}
