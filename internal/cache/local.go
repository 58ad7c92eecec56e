package cache

import (
	"fmt"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"github.com/prometheus/client_golang/prometheus"
)

// local keeps the values that this process used last, up to a number of bytes.
// It is guarded by its cache's mutex.
type local[T any] struct {
	max, bytes int64
	gauge      prometheus.Gauge // of bytes
	count      prometheus.Gauge
	lru        *simplelru.LRU[string, *entry[T]]
}

type entry[T any] struct {
	value T
	began time.Time
	until time.Time // when it is none any more
	size  int64
	timer *time.Timer // forgets the value then
}

// maxEntries bounds the number of values: even the smallest costs something.
const maxEntries = 16 << 10

func newLocal[T any](maxBytes int64, gauge, count prometheus.Gauge) (*local[T], error) {
	l := &local[T]{max: maxBytes, gauge: gauge, count: count}
	lru, err := simplelru.NewLRU(maxEntries, func(_ string, e *entry[T]) {
		e.timer.Stop()
		l.bytes -= e.size
		l.gauge.Set(float64(l.bytes))
		l.count.Dec()
	})
	if err != nil {
		return nil, fmt.Errorf("making a local cache: %w", err)
	}
	l.lru = lru
	return l, nil
}

// get gives the value of key, or nil.
func (l *local[T]) get(key string) *entry[T] {
	e, _ := l.lru.Get(key)
	return e
}

// put keeps a value in place of an older one, and makes room for it. forget is
// called, with its own goroutine, when its time is over.
func (l *local[T]) put(key string, e *entry[T], forget func()) {
	if old, ok := l.lru.Peek(key); ok && old.began.After(e.began) {
		return
	}
	l.lru.Remove(key)
	if e.size > l.max {
		return
	}
	for l.bytes+e.size > l.max {
		l.lru.RemoveOldest()
	}
	l.bytes += e.size
	l.gauge.Set(float64(l.bytes))
	e.timer = time.AfterFunc(time.Until(e.until), forget)
	l.count.Inc()
	l.lru.Add(key, e)
}

// drop forgets an entry whose time is over, unless another one has
// taken its place.
func (l *local[T]) drop(key string, e *entry[T]) {
	if now, ok := l.lru.Peek(key); ok && now == e {
		l.lru.Remove(key)
	}
}

func (l *local[T]) clear() { l.lru.Purge() }
