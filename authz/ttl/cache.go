// Package ttl keeps answers for a short, bounded time: a cache of bounded size
// whose entries expire one by one, and a group that lets concurrent callers
// share the making of one answer.
package ttl

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
)

// Cache is a least-recently-used map of bounded size in which every entry has
// its own end. It is safe for concurrent use and starts no goroutine.
type Cache[K comparable, V any] struct {
	mu      sync.Mutex
	entries *simplelru.LRU[K, entry[V]]
	// weigh, most and weight bound what is kept in bytes; weigh may be nil.
	weigh        func(V) int
	most, weight int
}

type entry[V any] struct {
	value  V
	end    time.Time
	weight int
}

// NewWeighedCache gives a cache that holds at most size entries, and values of
// at most so many bytes in all, as weigh tells them. A value that alone is
// heavier is not kept.
func NewWeighedCache[K comparable, V any](size, bytes int, weigh func(V) int) (*Cache[K, V], error) {
	c := &Cache[K, V]{weigh: weigh, most: bytes}
	var err error
	c.entries, err = simplelru.NewLRU(size, func(_ K, e entry[V]) { c.weight -= e.weight })
	if err != nil {
		return nil, fmt.Errorf("making a cache of %d entries: %w", size, err)
	}
	return c, nil
}

// NewCache gives a cache that holds at most size entries, at least one.
func NewCache[K comparable, V any](size int) (*Cache[K, V], error) {
	return NewWeighedCache[K, V](size, 0, nil)
}

// Get gives the value of a key until its end. At its end it is gone.
func (c *Cache[K, V]) Get(key K, now time.Time) (V, bool) {
	c.mu.Lock()
	e, ok := c.entries.Get(key)
	c.mu.Unlock()
	if !ok || !now.Before(e.end) {
		var none V
		return none, false
	}
	return e.value, true
}

// Known says whether the key was put here and not dropped since, even if its
// time has ended. It says nothing about now: use it to rank, never to decide.
func (c *Cache[K, V]) Known(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Contains(key)
}

// Put keeps a value until end.
func (c *Cache[K, V]) Put(key K, value V, end time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := entry[V]{value: value, end: end}
	if c.weigh == nil {
		c.entries.Add(key, e)
		return
	}
	c.entries.Remove(key) // or its weight would stay
	if e.weight = c.weigh(value); e.weight > c.most {
		return
	}
	c.weight += e.weight
	c.entries.Add(key, e)
	for c.weight > c.most {
		c.entries.RemoveOldest()
	}
}

// Drop forgets a key.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.entries.Remove(key)
}

// Len gives the number of entries, ended ones included.
func (c *Cache[K, V]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.entries.Len()
}
