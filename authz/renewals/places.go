package renewals

import (
	"net"
	"sync"
)

// places are a bounded number of turns, of which one peer gets no more than its
// share: whoever reaches the endpoint cannot keep the others' streams from
// being renewed. It is safe for concurrent use.
type places struct {
	all, share int

	mu    sync.Mutex
	taken map[string]int // by peer; who has none is not in it
	sum   int
}

func newPlaces(all, share int) *places {
	return &places{all: all, share: share, taken: map[string]int{}}
}

// take takes a turn for the peer at an address. Who gets true gives it back.
func (p *places) take(address string) bool {
	peer := host(address)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.sum == p.all || p.taken[peer] == p.share {
		return false
	}
	p.taken[peer]++
	p.sum++
	return true
}

func (p *places) give(address string) {
	peer := host(address)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sum--
	if p.taken[peer]--; p.taken[peer] == 0 {
		delete(p.taken, peer)
	}
}

// host is what the connections of one peer have in common.
func host(address string) string {
	h, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return h
}
