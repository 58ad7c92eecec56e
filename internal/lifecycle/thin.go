package lifecycle

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const (
	// thinEvery is the time in which one record of a kind is written.
	thinEvery = 10 * time.Second
	// thinKinds bounds the kinds that are told apart; what is beyond is one.
	thinKinds = 64
	// thinKey is the attribute of records that are about one call, and with
	// the message the kind they are of.
	thinKey = "rule"
)

// thinHandler thins out records that say why one call failed. While a source is
// away there are as many as there are calls, and each call has its audit line
// and is counted: of every kind, the first is written and then one every ten
// seconds, which says how many there were besides. Other records pass.
type thinHandler struct {
	next slog.Handler
	seen *thinned
}

// thinned is what the handlers that are made from each other share.
type thinned struct {
	mu    sync.Mutex
	kinds map[string]*thinKind
}

type thinKind struct {
	since time.Time // of the last that was written
	left  int       // left out since
}

func newThinHandler(next slog.Handler) slog.Handler {
	return &thinHandler{next: next, seen: &thinned{kinds: map[string]*thinKind{}}}
}

// Enabled is the next handler's word.
func (h *thinHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.next.Enabled(ctx, level)
}

// Handle writes a record or counts it.
func (h *thinHandler) Handle(ctx context.Context, r slog.Record) error {
	rule := ""
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == thinKey {
			rule = a.Value.String()
		}
		return rule == ""
	})
	if rule == "" {
		return h.next.Handle(ctx, r)
	}
	left, write := h.seen.count(r.Message+"\n"+rule, r.Time)
	if !write {
		return nil
	}
	if left > 0 {
		r = r.Clone()
		r.AddAttrs(slog.Int("leftOut", left))
	}
	return h.next.Handle(ctx, r)
}

// WithAttrs gives a handler that counts together with h.
func (h *thinHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &thinHandler{next: h.next.WithAttrs(attrs), seen: h.seen}
}

// WithGroup gives a handler that counts together with h.
func (h *thinHandler) WithGroup(name string) slog.Handler {
	return &thinHandler{next: h.next.WithGroup(name), seen: h.seen}
}

// count says whether a record of a kind is to be written, and how many were
// left out before it.
func (t *thinned) count(kind string, now time.Time) (left int, write bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := t.kinds[kind]
	if k == nil && len(t.kinds) >= thinKinds {
		kind = ""
		k = t.kinds[kind]
	}
	if k == nil {
		k = &thinKind{}
		t.kinds[kind] = k
	}
	if !k.since.IsZero() && now.Sub(k.since) < thinEvery {
		k.left++
		return 0, false
	}
	left = k.left
	k.since, k.left = now, 0
	return left, true
}
