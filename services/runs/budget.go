package runs

import (
	"fmt"

	"golang.org/x/sync/semaphore"

	"hangar.io/glidepath/internal/answer"
	"hangar.io/glidepath/internal/cache"
)

// What reads may hold of archived objects, in bytes as they are packed. Each kind has
// a budget of its own: no list takes a single run's, and warming takes nobody's. One
// list leaves room for a second one.
const (
	allListBytes = 32 << 20
	oneListBytes = 24 << 20
	runsBytes    = 8 << 20
	warmBytes    = 8 << 20
)

// budget bounds what reads hold at once, in bytes. It is safe for concurrent use.
type budget struct {
	all  *semaphore.Weighted
	most int64 // of one read
}

func newBudget(all, each int64) *budget {
	return &budget{all: semaphore.NewWeighted(all), most: each}
}

// hold gives a read that holds nothing yet. It is for one goroutine, and ends.
func (b *budget) hold() *holding { return &holding{of: b} }

// holding is what one read holds.
type holding struct {
	of    *budget
	bytes int64
}

// pack gives an object that is held from now on. Where it cannot be, nothing of the
// read may be answered: the error is answer.ErrTooLarge where one read takes no more,
// and cache.ErrBusy where others hold what it would take.
func (h *holding) pack(raw []byte) (packed, error) {
	p, err := pack(raw)
	if err != nil {
		return nil, err
	}
	size := int64(len(p))
	if h.bytes+size > h.of.most {
		return nil, fmt.Errorf("%w: objects of more than %d bytes, packed", answer.ErrTooLarge, h.of.most)
	}
	if !h.of.all.TryAcquire(size) {
		return nil, fmt.Errorf("holding objects: %w", cache.ErrBusy)
	}
	h.bytes += size
	return p, nil
}

// drop gives back what an object took.
func (h *holding) drop(p packed) {
	h.of.all.Release(int64(len(p)))
	h.bytes -= int64(len(p))
}

// end gives everything back.
func (h *holding) end() {
	h.of.all.Release(h.bytes)
	h.bytes = 0
}
