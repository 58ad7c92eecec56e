package bucket

import (
	"hash/maphash"
	"time"

	"hangar.io/glidepath/internal/ratelimit"
)

// kind tells the buckets of one caller apart.
type kind uint8

const (
	each  kind = iota + 1 // of a person, or of the caller itself
	inAll                 // of the caller with all of its people
	crowd                 // of everyone for whom there was no room
)

// what names a bucket among those of its caller.
type what struct {
	kind           kind
	of             kind // of a crowd: what would have been counted
	bucket, person string
}

// everyone is the caller under whom those are counted for whom there is no room
// at all. No user name is empty.
const everyone = ""

// place is where a call is counted, and until when the bucket is not full: now,
// and once the call has taken from it.
type place struct {
	caller, what key
	full, then   time.Duration
}

// take counts one call at its place, or gives the time until it could be.
func (p *place) take(now time.Duration, l ratelimit.Limit) (wait time.Duration) {
	empty := now + l.Refill()
	// Under a limit that was changed, the bucket is empty at worst.
	p.full = min(p.full, empty)
	p.then = max(p.full, now) + l.Interval()
	return max(0, p.then-empty)
}

// find gives the place of a bucket: its own, or that of the crowd when there is
// no room for another.
func (t *Table) find(now time.Duration, name string, w what) place {
	p := place{caller: t.keyOf(what{bucket: name}), what: t.keyOf(w)}
	c := t.callers[p.caller]
	if c != nil {
		if full, ok := c.full[p.what]; ok {
			p.full = full
			return p
		}
	}
	if t.kept >= t.sweepAt || t.kept >= t.size {
		t.sweep(now)
		c = t.callers[p.caller]
	}
	if t.kept < t.size {
		if c == nil || len(c.full) < t.callerSize {
			return p
		}
		t.sweepCaller(now, c)
		if len(c.full) < t.callerSize {
			return p
		}
	}
	t.crowded++
	p.what = t.keyOf(what{kind: crowd, of: w.kind, bucket: w.bucket})
	if c != nil {
		full, ok := c.full[p.what]
		if ok || t.kept < t.size {
			p.full = full
			return p
		}
	}
	p.caller = t.keyOf(what{bucket: everyone})
	if c := t.callers[p.caller]; c != nil {
		p.full = c.full[p.what]
	}
	return p
}

// keep remembers until when a bucket is not full.
func (t *Table) keep(p place, full time.Duration) {
	c := t.callers[p.caller]
	if c == nil {
		c = &caller{full: map[key]time.Duration{}}
		t.callers[p.caller] = c
	}
	before := len(c.full)
	c.full[p.what] = full
	t.kept += len(c.full) - before
}

const (
	// smallest is the size below which nothing is swept.
	smallest = 1024
	// apart is the time between two sweeps that find no room.
	apart = time.Second
)

// sweep forgets the buckets that are full again, of all callers. It waits until
// the table has doubled, so that it costs each new bucket the same; and, once
// the table is as large as it may be, for a second.
func (t *Table) sweep(now time.Duration) {
	if t.kept >= t.size && t.swept != 0 && now < t.swept+apart {
		return
	}
	for name, c := range t.callers {
		t.forget(now, c)
		if len(c.full) == 0 {
			delete(t.callers, name)
		}
	}
	t.swept = now
	t.sweepAt = max(smallest, 2*t.kept)
}

func (t *Table) sweepCaller(now time.Duration, c *caller) {
	if c.swept != 0 && now < c.swept+apart {
		return
	}
	t.forget(now, c)
	c.swept = now
}

func (t *Table) forget(now time.Duration, c *caller) {
	for k, full := range c.full {
		if full <= now {
			delete(c.full, k)
			t.kept--
		}
	}
}

func (t *Table) keyOf(w what) key {
	return key{maphash.Comparable(t.seeds[0], w), maphash.Comparable(t.seeds[1], w)}
}
