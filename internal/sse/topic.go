package sse

import "sync"

// Limits bound what a topic keeps. Both are required.
type Limits struct {
	// Count is how many messages are kept.
	Count int
	// Bytes is how large they may be together. The last message is kept
	// however large it is.
	Bytes int
}

// Topic keeps the last messages that were published, in order. It is safe for
// concurrent use. Messages are shared by all who read them.
type Topic[T any] struct {
	limits Limits
	size   func(T) int

	mu     sync.Mutex
	kept   []T    // a ring: message n stands at n % len(kept)
	oldest uint64 // number of the oldest message that is kept
	head   uint64 // number of the next message to be published
	bytes  int
	moved  chan struct{} // closed with the next message
}

// NewTopic gives an empty topic. size tells how large a message is, in bytes.
func NewTopic[T any](limits Limits, size func(T) int) *Topic[T] {
	return &Topic[T]{limits: limits, size: size, kept: make([]T, limits.Count), moved: make(chan struct{})}
}

// Publish appends messages and wakes whoever waits. It waits for nobody.
func (t *Topic[T]) Publish(messages ...T) {
	if len(messages) == 0 {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, m := range messages {
		t.bytes += t.size(m)
		for t.oldest < t.head && (t.head-t.oldest >= uint64(len(t.kept)) || t.bytes > t.limits.Bytes) {
			t.drop()
		}
		t.kept[t.head%uint64(len(t.kept))] = m
		t.head++
	}
	// It carries nothing: whoever waits looks for what there is.
	close(t.moved)
	t.moved = make(chan struct{})
}

func (t *Topic[T]) drop() {
	at := t.oldest % uint64(len(t.kept))
	t.bytes -= t.size(t.kept[at])
	t.kept[at] = *new(T)
	t.oldest++
}

// Kept gives all messages that are kept, and the cursor behind them.
func (t *Topic[T]) Kept() ([]T, uint64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.from(t.oldest), t.head
}

// Head gives the cursor behind the last message.
func (t *Topic[T]) Head() uint64 {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head
}

// After gives what was published from a cursor on; complete is false when some
// of it is not kept any more. moved is closed once there is more.
func (t *Topic[T]) After(cursor uint64) (messages []T, moved <-chan struct{}, complete bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if cursor < t.oldest {
		return nil, t.moved, false
	}
	return t.from(cursor), t.moved, true
}

// from copies the messages from a number on.
func (t *Topic[T]) from(n uint64) []T {
	if n >= t.head {
		return nil
	}
	out := make([]T, 0, t.head-n)
	for ; n < t.head; n++ {
		out = append(out, t.kept[n%uint64(len(t.kept))])
	}
	return out
}
