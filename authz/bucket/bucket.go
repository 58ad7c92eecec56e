// Package bucket counts the calls of callers against their limits. A caller
// that acts for people has a bucket for each of them, so that a noisy one
// spends nothing of the others' share, and one for all of its calls together
// where the policy says so.
//
// Of a bucket only the time is kept at which it is full again: one that is full
// needs no memory, and what is remembered stays true when the limit changes.
// What is kept is bounded. A caller over its bound, by naming ever more people,
// has those that are new counted together; nothing that still counts is ever
// thrown away for it, so no flood of names frees anyone of a limit.
package bucket

import (
	"hash/maphash"
	"sync"
	"time"

	"hangar.io/glidepath/internal/ratelimit"
)

// The bounds of a table. A bucket takes about 50 bytes.
const (
	// DefaultSize bounds the buckets of all callers together.
	DefaultSize = 100_000
	// DefaultCallerSize bounds those of one caller.
	DefaultCallerSize = 10_000
)

// Config says how large a Table may grow. A zero field has its default.
type Config struct {
	Size, CallerSize int
}

// Table holds the buckets of one edge. It is safe for concurrent use, starts no
// goroutine, and lives as long as its process: no other edge knows of it.
type Table struct {
	size, callerSize int
	// Times are kept as what has passed since then, which no change of the
	// machine's clock moves.
	began time.Time
	// seeds make the keys: 128 bits that nobody outside can aim at, instead of
	// names as long as callers like.
	seeds [2]maphash.Seed

	mu      sync.Mutex
	callers map[key]*caller
	kept    int
	sweepAt int // as many buckets call for a sweep
	swept   time.Duration
	crowded uint64
}

// caller holds the buckets of one caller: by key, when each is full again.
type caller struct {
	full  map[key]time.Duration
	swept time.Duration
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
	// all of its calls.
	Limit ratelimit.Limit
	InAll bool
	// Wait is the time after which the call would be taken if nothing else
	// came in between. It is always positive.
	Wait time.Duration
}

// New gives an empty Table.
func New(c Config) *Table {
	t := &Table{
		size: c.Size, callerSize: c.CallerSize, began: time.Now(),
		seeds:   [2]maphash.Seed{maphash.MakeSeed(), maphash.MakeSeed()},
		callers: map[key]*caller{}, sweepAt: smallest,
	}
	if t.size <= 0 {
		t.size = DefaultSize
	}
	if t.callerSize <= 0 {
		t.callerSize = DefaultCallerSize
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
	for _, one := range [...]struct {
		limit ratelimit.Limit
		what  what
	}{
		// The caller's own first, so that its people cannot crowd it out.
		{c.InAll, what{kind: inAll, bucket: c.InAll.Bucket}},
		{c.Each, what{kind: each, bucket: c.Each.Bucket, person: c.Person}},
	} {
		if one.limit.IsZero() {
			continue
		}
		p := t.find(now, c.Caller, one.what)
		if wait := p.take(now, one.limit); wait > out.Wait {
			out = Refusal{Limit: one.limit, InAll: one.what.kind == inAll, Wait: wait}
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

// Len gives the number of buckets that are kept.
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
