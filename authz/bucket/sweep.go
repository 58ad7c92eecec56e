package bucket

import "time"

const (
	// smallest is the size below which nothing is swept.
	smallest = 1024
	// apart is the time between two sweeps that find no room.
	apart = time.Second
)

// sweep says when buckets that are full again are forgotten: when there are
// twice as many as after the last time, so that it costs each new bucket the
// same; and, where there is room for no more, once a second.
type sweep struct {
	at   int
	last time.Duration // 0 for never
}

func (s *sweep) due(now time.Duration, n, most int) bool {
	if n < most {
		return n >= max(smallest, s.at)
	}
	return s.last == 0 || now >= s.last+apart
}

func (s *sweep) done(now time.Duration, n int) {
	s.at, s.last = 2*n, max(now, 1)
}

// roomForCaller says whether another caller may have buckets under a limit.
func (t *Table) roomForCaller(now time.Duration, in *buckets) bool {
	if in.sweep.due(now, len(in.callers), t.mostCallers) {
		for name, c := range in.callers {
			t.forgetPeople(now, c)
			if c.isFull(now) {
				delete(in.callers, name)
				t.kept--
			}
		}
		in.sweep.done(now, len(in.callers))
	}
	return len(in.callers) < t.mostCallers
}

// roomForPerson says whether another of the caller's people may have a bucket.
func (t *Table) roomForPerson(now time.Duration, c *caller) bool {
	if c.sweep.due(now, len(c.people), t.mostPeople) {
		t.forgetPeople(now, c)
		c.sweep.done(now, len(c.people))
	}
	return len(c.people) < t.mostPeople
}

func (t *Table) forgetPeople(now time.Duration, c *caller) {
	for name, full := range c.people {
		if full <= now {
			delete(c.people, name)
			t.kept--
		}
	}
	if len(c.people) == 0 {
		c.people = nil // a map keeps its room
	}
}

// isFull says that a new caller would be told the same.
func (c *caller) isFull(now time.Duration) bool {
	for _, full := range c.full {
		if full > now {
			return false
		}
	}
	return c.people == nil
}
