package kubelist

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

var errCodec = errors.New("not an encoded list")

// format begins what Encode gives. The format before this one began with the
// number of objects, which is never as large.
const format = math.MaxUint32 - 1

// Encode gives a list in one piece of bytes, for a cache to keep. Decode reads
// it.
//
//	list   = format string{version} count item* json
//	item   = string{namespace name uid resourceVersion} length
//	string = length bytes
//
// Numbers are unsigned varints; json is the objects' JSON, one after the other.
func (l *List) Encode() []byte {
	out := make([]byte, 0, l.Size()+3*binary.MaxVarintLen64+len(l.version))
	out = binary.AppendUvarint(out, format)
	out = binary.AppendUvarint(out, uint64(len(l.version)))
	out = append(out, l.version...)
	out = binary.AppendUvarint(out, uint64(len(l.items)))
	for _, it := range l.items {
		for _, s := range []string{it.Namespace, it.Name, it.UID, it.ResourceVersion} {
			out = binary.AppendUvarint(out, uint64(len(s)))
			out = append(out, s...)
		}
		out = binary.AppendUvarint(out, uint64(it.to-it.from))
	}
	for i := range l.items {
		out = append(out, l.JSON(i)...)
	}
	return out
}

// Decode reads what Encode gave. The bytes of the objects are not looked into.
func Decode(raw []byte) (*List, error) {
	r := reader{rest: raw}
	if n, size := binary.Uvarint(raw); n != format {
		return nil, fmt.Errorf("%w: of another format", errCodec)
	} else {
		r.rest = raw[size:]
	}
	version := r.string()
	count := r.number()
	// An item takes five bytes at least: a wrong count must not make a
	// large allocation.
	if count > len(raw)/5 {
		return nil, fmt.Errorf("%w: %d objects in %d bytes", errCodec, count, len(raw))
	}
	metas, lengths := make([]Meta, count), make([]int, count)
	for i := range metas {
		metas[i] = Meta{Namespace: r.string(), Name: r.string(), UID: r.string(), ResourceVersion: r.string()}
		lengths[i] = r.number()
	}
	l := newList()
	l.version = version
	for i, m := range metas {
		l.add(m, r.bytes(lengths[i]))
	}
	if r.failed || len(r.rest) > 0 {
		return nil, fmt.Errorf("%w: cut, or too long", errCodec)
	}
	return l, nil
}

// reader takes values off the front of rest. After the first fault it gives
// zero values only.
type reader struct {
	rest   []byte
	failed bool
}

func (r *reader) number() int {
	n, size := binary.Uvarint(r.rest)
	if r.failed || size <= 0 || n > math.MaxInt32 {
		r.failed, r.rest = true, nil
		return 0
	}
	r.rest = r.rest[size:]
	return int(n)
}

func (r *reader) bytes(n int) []byte {
	if n > len(r.rest) {
		r.failed, r.rest = true, nil
		return nil
	}
	b := r.rest[:n]
	r.rest = r.rest[n:]
	return b
}

func (r *reader) string() string { return string(r.bytes(r.number())) }
