package runs

import (
	"bytes"
	"fmt"

	"github.com/klauspost/compress/s2"
)

// packed is an object that waits, compressed, to be written in its turn: a list
// is several times larger than what its process may take.
type packed []byte

func pack(raw []byte) packed { return bytes.Clone(s2.Encode(nil, raw)) }

func (p packed) unpack(into []byte) ([]byte, error) {
	raw, err := s2.Decode(into, p)
	if err != nil {
		return nil, fmt.Errorf("unpacking an object: %w", err)
	}
	return raw, nil
}
