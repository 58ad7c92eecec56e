package runs

import (
	"bytes"
	"fmt"
	"sync"

	"github.com/klauspost/compress/zstd"
)

// packed is an object that waits, compressed, to be written in its turn: a list
// is several times larger than what its process may take.
type packed []byte

// maxUnpacked is how large an object may be: more than any that is read.
const maxUnpacked = 64 << 20

// packer compresses to half of what faster ways give, which is what few full lists
// take of the process. It packs two objects at once, and more wait for it.
type packer struct {
	in  *zstd.Encoder
	out *zstd.Decoder
}

var thePacker = sync.OnceValues(func() (p packer, err error) {
	const window, atOnce = 128 << 10, 2
	p.in, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithWindowSize(window), zstd.WithEncoderConcurrency(atOnce))
	if err != nil {
		return packer{}, fmt.Errorf("making a packer: %w", err)
	}
	p.out, err = zstd.NewReader(nil, zstd.WithDecoderConcurrency(atOnce), zstd.WithDecoderLowmem(true), zstd.WithDecoderMaxMemory(maxUnpacked))
	if err != nil {
		return packer{}, fmt.Errorf("making an unpacker: %w", err)
	}
	return p, nil
})

func pack(raw []byte) (packed, error) {
	p, err := thePacker()
	if err != nil {
		return nil, err
	}
	return bytes.Clone(p.in.EncodeAll(raw, nil)), nil
}

func (p packed) unpack(into []byte) ([]byte, error) {
	un, err := thePacker()
	if err != nil {
		return nil, err
	}
	raw, err := un.out.DecodeAll(p, into[:0])
	if err != nil {
		return nil, fmt.Errorf("unpacking an object: %w", err)
	}
	return raw, nil
}
