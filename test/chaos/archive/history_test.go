package archive_test

import (
	"slices"
	"time"
)

// window is when something may have been read.
type window struct{ from, to time.Time }

// history is what something was, one after the other. When exactly one took another's place nobody can tell: it was between two
// moments.
type history[T any] []version[T]

// version is what it may have been from since to gone.
type version[T any] struct {
	value       T
	since, gone time.Time
}

// forever is later than everything that happens here.
var forever = time.Now().Add(24 * time.Hour)

// newHistory begins with what was always so.
func newHistory[T any](value T) history[T] { return history[T]{{value: value, gone: forever}} }

// begin says that the value takes the last one's place from now on, and done that it has.
func (h *history[T]) begin(value T) {
	*h = append(*h, version[T]{value: value, since: time.Now(), gone: forever})
}

func (h history[T]) done() { h[len(h)-2].gone = time.Now() }

// last is what it is.
func (h history[T]) last() T { return h[len(h)-1].value }

// ever says whether, at some moment of the window, it may have been something of which so is true.
func (h history[T]) ever(in window, so func(T) bool) bool {
	for _, v := range h {
		if v.in(in) && so(v.value) {
			return true
		}
	}
	return false
}

// in says whether it may have been this at some moment of the window.
func (v version[T]) in(w window) bool { return !v.since.After(w.to) && !v.gone.Before(w.from) }

// find gives the version of which so is true; -1 for none.
func (h history[T]) find(so func(T) bool) int {
	return slices.IndexFunc(h, func(v version[T]) bool { return so(v.value) })
}

// always says whether it was nothing else in all of the window.
func (h history[T]) always(in window, so func(T) bool) bool {
	return !h.ever(in, func(v T) bool { return !so(v) })
}
