package answer

import (
	"fmt"
	"sync"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Plains keeps the bodies that callers without gzip asked for last, so that a
// poller of a megabyte does not have it uncompressed each time. It is safe for
// concurrent use, and nil keeps nothing.
type Plains struct {
	mu         sync.Mutex
	max, bytes int
	bodies     *simplelru.LRU[string, *plain] // by entity tag
}

type plain struct {
	size  int
	whole func() ([]byte, error)
}

// maxPlains bounds the number of bodies.
const maxPlains = 4 << 10

// NewPlains keeps up to max bytes. A body of more than a quarter of that is
// never kept.
func NewPlains(max int) (*Plains, error) {
	p := &Plains{max: max}
	bodies, err := simplelru.NewLRU(maxPlains, func(_ string, b *plain) { p.bytes -= b.size })
	if err != nil {
		return nil, fmt.Errorf("keeping bodies: %w", err)
	}
	p.bodies = bodies
	return p, nil
}

// takes says whether the body of s is one to keep.
func (p *Plains) takes(s *Stored) bool { return s.compressed() && p != nil && s.plain.size <= p.max/4 }

// drop forgets the body of s.
func (p *Plains) drop(s *Stored) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bodies.Remove(s.plain.etag)
}

// find gives the body of s, which whoever needs it first uncompresses.
func (p *Plains) find(s *Stored) *plain {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b, ok := p.bodies.Get(s.plain.etag); ok {
		return b
	}
	for p.bytes+s.plain.size > p.max {
		p.bodies.RemoveOldest()
	}
	// Whoever comes next waits for the same.
	b := &plain{size: s.plain.size, whole: sync.OnceValues(s.inflated)}
	p.bytes += b.size
	p.bodies.Add(s.plain.etag, b)
	return b
}
