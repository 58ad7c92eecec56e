package kubelist

import (
	"cmp"
	"slices"
	"strings"
	"sync"
)

// chunkSize is how much JSON a list keeps in one piece, unless a single object
// is larger: lists of up to a MiB are one piece, and larger ones grow without
// being copied as a whole.
const chunkSize = 1 << 20

// Meta is what is known of an object without its JSON.
type Meta struct {
	Namespace, Name, UID, ResourceVersion string
}

// Compare orders objects by namespace and then by name, which is not the order
// of the cluster: that compares "<namespace>/<name>" as one string.
func (m Meta) Compare(o Meta) int {
	return cmp.Or(strings.Compare(m.Namespace, o.Namespace), strings.Compare(m.Name, o.Name))
}

// item is an object: its fields, and where its JSON stands.
type item struct {
	Meta
	chunk, from, to int
}

// List is objects of one kind in the order in which the API server gave them.
// A list that a reader or decoder returned does not change any more and may be
// shared.
type List struct {
	items  []item
	chunks [][]byte // each holds objects with a comma between two
	size   int      // of all chunks
	// version is the list's own resourceVersion: every change up to it is in
	// the list, and none after it.
	version string

	sorted func() []int
}

func newList() *List {
	l := &List{}
	l.sorted = sync.OnceValue(l.sort)
	return l
}

func (l *List) sort() []int {
	order := make([]int, len(l.items))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return l.items[a].Compare(l.items[b].Meta) })
	return order
}

// add appends an object's JSON, which it copies.
func (l *List) add(m Meta, json []byte) {
	last := len(l.chunks) - 1
	if last < 0 || len(l.chunks[last])+len(json)+1 > chunkSize {
		l.chunks = append(l.chunks, nil)
		last++
	}
	chunk, before := l.chunks[last], len(l.chunks[last])
	if before > 0 {
		chunk = append(chunk, ',')
	}
	from := len(chunk)
	chunk = append(chunk, json...)
	l.chunks[last] = chunk
	l.size += len(chunk) - before
	l.items = append(l.items, item{Meta: m, chunk: last, from: from, to: len(chunk)})
}

// ResourceVersion is the version of the list as a whole: what a watch that is to
// miss nothing begins after.
func (l *List) ResourceVersion() string { return l.version }

// Len is the number of objects.
func (l *List) Len() int { return len(l.items) }

// Size is roughly what the list takes in memory, in bytes.
func (l *List) Size() int {
	const perItem = 160 // the fields and the strings they hold
	return l.size + perItem*len(l.items)
}

// Meta is what is known of object i, counted from 0.
func (l *List) Meta(i int) Meta { return l.items[i].Meta }

// JSON is object i. It belongs to the list: read it only.
func (l *List) JSON(i int) []byte {
	it := l.items[i]
	return l.chunks[it.chunk][it.from:it.to:it.to]
}

// Elements are the elements of a JSON array of all objects, in the order of
// the cluster, in parts that follow each other. They belong to the list: read
// them only.
func (l *List) Elements() [][]byte {
	parts := make([][]byte, 0, 2*len(l.chunks))
	for i, chunk := range l.chunks {
		if i > 0 {
			parts = append(parts, comma)
		}
		parts = append(parts, chunk)
	}
	return parts
}

// Sorted gives the indexes of all objects by namespace and then by name. It
// belongs to the list: read it only.
func (l *List) Sorted() []int { return l.sorted() }

var comma = []byte(",")

// NewList gives a list of objects that are shown already.
func NewList(version string, metas []Meta, objects [][]byte) *List {
	l := newList()
	l.version = version
	for i, m := range metas {
		l.add(m, objects[i])
	}
	return l
}
