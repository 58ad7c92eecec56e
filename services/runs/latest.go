package runs

import (
	"cmp"
	"container/heap"
	"slices"
	"time"
)

// clocksApart is by how much the clocks of a cluster and of its archive may differ.
const clocksApart = time.Minute

// latest keeps the newest of the runs that it is given, up to a number. The archive
// gives runs by when they were stored, which says little about when they were made:
// one that was stored days late comes first.
//
// A run that was put into another Result meanwhile is archived twice.
type latest struct {
	most int
	runs oldestFirst
	uids map[string]struct{} // of the runs
}

// wants says whether a run that was made at a time may be one of the newest.
func (l *latest) wants(created time.Time) bool {
	return len(l.runs) < l.most || !created.Before(l.runs[0].created)
}

// add takes a run, in place of the oldest when there are too many. It gives the one
// that is in no place any more, which may be the run itself.
func (l *latest) add(r listed) (out listed) {
	if l.uids == nil {
		l.uids = map[string]struct{}{}
	}
	if _, again := l.uids[r.row.Result]; again {
		return l.again(r)
	}
	if len(l.runs) < l.most {
		heap.Push(&l.runs, r)
	} else {
		if newer(r, l.runs[0]) >= 0 {
			return r
		}
		out, l.runs[0] = l.runs[0], r
		heap.Fix(&l.runs, 0)
		delete(l.uids, out.row.Result)
	}
	l.uids[r.row.Result] = struct{}{}
	return out
}

// again takes another record of a run that is there.
func (l *latest) again(r listed) (out listed) {
	i := slices.IndexFunc(l.runs, func(o listed) bool { return o.row.Result == r.row.Result })
	if !r.instead(l.runs[i]) {
		return r
	}
	out, l.runs[i] = l.runs[i], r
	heap.Fix(&l.runs, i)
	return out
}

// instead says whether a record of a run is to be shown and not another of the same:
// that which is read when one asks for the run by its uid.
func (r *listed) instead(of listed) bool {
	if r.own != of.own {
		return r.own
	}
	return r.stored.After(of.stored)
}

// whole says that no run that was stored at a time or before is one of the newest:
// it was made before it was stored. When is unknown for a zero time.
func (l *latest) whole(stored time.Time) bool {
	return len(l.runs) == l.most && !stored.IsZero() && l.runs[0].created.After(stored.Add(clocksApart))
}

// all gives the runs, newest first.
func (l *latest) all() []listed {
	slices.SortFunc(l.runs, newer)
	return l.runs
}

// newer orders runs as lists do.
func newer(a, b listed) int {
	return cmp.Or(b.created.Compare(a.created), cmp.Compare(a.row.Result, b.row.Result))
}

// oldestFirst is a heap.
type oldestFirst []listed

func (h oldestFirst) Len() int           { return len(h) }
func (h oldestFirst) Less(i, j int) bool { return newer(h[i], h[j]) > 0 }
func (h oldestFirst) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is for container/heap.
func (h *oldestFirst) Push(x any) { *h = append(*h, x.(listed)) }

// Pop is for container/heap.
func (h *oldestFirst) Pop() any {
	last := len(*h) - 1
	r := (*h)[last]
	*h = (*h)[:last]
	return r
}
