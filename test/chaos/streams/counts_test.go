package streams_test

import (
	"fmt"
	"maps"
)

// counts is what happened to viewers.
type counts struct {
	connects, snapshots, changes int
	broken                       int            // streams that ended without a word
	resets, ends                 map[string]int // by reason
}

// counted is what happened to a viewer so far.
func (v *viewer) counted() counts {
	v.mu.Lock()
	defer v.mu.Unlock()
	c := v.counts
	c.resets, c.ends = maps.Clone(c.resets), maps.Clone(c.ends)
	return c
}

// summary adds up what happened to all viewers.
func (w *world) summary() counts {
	sum := counts{resets: map[string]int{}, ends: map[string]int{}}
	for _, v := range w.crowd {
		sum = sum.plus(v.counted(), 1)
	}
	return sum
}

func (c counts) since(before counts) counts { return c.plus(before, -1) }

func (c counts) plus(o counts, times int) counts {
	sum := counts{
		connects: c.connects + times*o.connects, snapshots: c.snapshots + times*o.snapshots, changes: c.changes + times*o.changes,
		broken: c.broken + times*o.broken, resets: maps.Clone(c.resets), ends: maps.Clone(c.ends),
	}
	for reason, n := range o.resets {
		sum.resets[reason] += times * n
	}
	for reason, n := range o.ends {
		sum.ends[reason] += times * n
	}
	for _, m := range []map[string]int{sum.resets, sum.ends} {
		maps.DeleteFunc(m, func(_ string, n int) bool { return n == 0 })
	}
	return sum
}

// String is one line for people.
func (c counts) String() string {
	return fmt.Sprintf("%d changes came, %d connects, %d streams broke, %d ended %v, %d times everything anew, %v",
		c.changes, c.connects, c.broken, total(c.ends), c.ends, c.snapshots, c.resets)
}

func total(m map[string]int) (n int) {
	for _, one := range m {
		n += one
	}
	return n
}
