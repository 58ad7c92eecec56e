package results

import "container/heap"

// newest puts records in order of their creation, newest first. They come in
// order of when they were stored, which is seconds after their creation, or days
// where a watcher was down. What was stored before a moment was created before
// it, so a record waits only until that moment is reached.
type newest struct {
	heap  byCreation
	bytes int
}

// maxWaiting is how much waits. Beyond it the order is as good as it can be.
const maxWaiting = 16 << 20

func (n *newest) add(r Record) {
	n.bytes += len(r.Value)
	heap.Push(&n.heap, r)
}

// next gives the newest record of which it is known that none newer comes, when
// all that come were stored at w's time or before. Nil takes what there is.
func (n *newest) next(w *wireRecord) (Record, bool) {
	if len(n.heap) == 0 {
		return Record{}, false
	}
	first := n.heap[0]
	if w != nil && n.bytes <= maxWaiting && !w.stored.IsZero() && first.Created.Before(w.stored.Truncate(creationUnit)) {
		return Record{}, false
	}
	n.bytes -= len(first.Value)
	return heap.Pop(&n.heap).(Record), true
}

type byCreation []Record

func (h byCreation) Len() int           { return len(h) }
func (h byCreation) Less(i, j int) bool { return h[i].Created.After(h[j].Created) }
func (h byCreation) Swap(i, j int)      { h[i], h[j] = h[j], h[i] }

// Push is for container/heap.
func (h *byCreation) Push(x any) { *h = append(*h, x.(Record)) }

// Pop is for container/heap.
func (h *byCreation) Pop() any {
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = Record{}
	*h = old[:len(old)-1]
	return last
}
