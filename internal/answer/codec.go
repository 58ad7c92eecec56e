package answer

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
)

// storedForm names the form that Codec gives. Another one is another name, and
// what has it counts as absent where it is not known.
const storedForm = "answer1\n"

var errForm = errors.New("not a stored answer")

// Codec keeps Stored values in a cache (a cache.Codec). What it gives is
// compressed already.
type Codec struct{}

// Encode gives the bytes that Decode reads.
func (Codec) Encode(s *Stored) ([]byte, error) {
	kept := s.kept()
	head := make([]byte, 0, 128)
	head = append(head, storedForm...)
	for _, field := range []string{s.contentType, s.plain.etag, s.zipped.etag, s.zipped.encoding} {
		if len(field) > math.MaxUint8 {
			return nil, fmt.Errorf("a field of %d bytes", len(field))
		}
		head = append(head, byte(len(field)))
		head = append(head, field...)
	}
	head = binary.AppendUvarint(head, uint64(s.plain.size))
	out := make([]byte, 0, len(head)+kept.size)
	out = append(out, head...)
	for _, p := range kept.parts {
		out = append(out, p...)
	}
	return out, nil
}

// Decode reads what Encode gave. The value keeps raw.
func (Codec) Decode(raw []byte) (*Stored, error) {
	rest, ok := bytes.CutPrefix(raw, []byte(storedForm))
	if !ok {
		return nil, errForm
	}
	s := new(Stored)
	for _, field := range []*string{&s.contentType, &s.plain.etag, &s.zipped.etag, &s.zipped.encoding} {
		if len(rest) == 0 || len(rest) <= int(rest[0]) {
			return nil, errForm
		}
		n := 1 + int(rest[0])
		*field, rest = string(rest[1:n]), rest[n:]
	}
	size, n := binary.Uvarint(rest)
	if n <= 0 || size > math.MaxInt32 {
		return nil, errForm
	}
	rest = rest[n:]
	s.plain.size = int(size)
	switch {
	case s.zipped.encoding == "gzip":
		s.zipped.parts, s.zipped.size = [][]byte{rest}, len(rest)
	case s.zipped.encoding == "" && len(rest) == s.plain.size:
		s.plain.parts = [][]byte{rest}
	default:
		return nil, errForm
	}
	return s, nil
}

// Size is that of the value.
func (Codec) Size(s *Stored) int { return s.Size() }
