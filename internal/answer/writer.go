package answer

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"hash"

	"github.com/klauspost/compress/gzip"
)

// ErrTooLarge says that more was written than a Writer takes.
var ErrTooLarge = errors.New("the answer is too large")

// storedLevel compresses what is made once and then kept for long. Against the
// fastest level it takes half as long again and saves a fifth of the memory.
const storedLevel = 5

// errWritten says that a Writer has given its answer.
var errWritten = errors.New("the answer is written already")

// Writer makes a Stored of a body that is written bit by bit, and never holds
// more of it than its compressed form and a window. It is for one goroutine.
type Writer struct {
	contentType string
	max, size   int64
	digest      hash.Hash
	start       []byte // the body, until it is worth compressing
	out         *blocks
	zip         *gzip.Writer // nil until then
	err         error
}

// NewWriter begins a body of a content type. Beyond max bytes, which are those
// of the body itself, writing fails with ErrTooLarge.
func NewWriter(contentType string, max int64) *Writer {
	return &Writer{contentType: contentType, max: max, digest: sha256.New()}
}

// Write takes the next bytes of the body. After an error there is no answer.
func (w *Writer) Write(p []byte) (int, error) {
	if w.err != nil {
		return 0, w.err
	}
	if w.size+int64(len(p)) > w.max {
		w.err = fmt.Errorf("%w: over %d bytes", ErrTooLarge, w.max)
		return 0, w.err
	}
	w.size += int64(len(p))
	w.digest.Write(p)
	if w.zip == nil && w.size < minCompressed {
		w.start = append(w.start, p...)
		return len(p), nil
	}
	if w.err = w.compress(p); w.err != nil {
		return 0, w.err
	}
	return len(p), nil
}

func (w *Writer) compress(p []byte) error {
	if w.zip == nil {
		w.out = new(blocks)
		zip, err := gzip.NewWriterLevel(w.out, storedLevel)
		if err != nil {
			return fmt.Errorf("compressing: %w", err)
		}
		w.zip = zip
		if _, err := zip.Write(w.start); err != nil {
			return fmt.Errorf("compressing: %w", err)
		}
		w.start = nil
	}
	if _, err := w.zip.Write(p); err != nil {
		return fmt.Errorf("compressing: %w", err)
	}
	return nil
}

// Len is how many bytes of the body were written.
func (w *Writer) Len() int64 { return w.size }

// Held is how many bytes of memory what was written takes so far, roughly.
func (w *Writer) Held() int64 {
	if w.out == nil {
		return int64(len(w.start))
	}
	return w.out.held
}

// Stored ends the body and gives it. The same body is the same Stored, however
// it was cut when it was written.
func (w *Writer) Stored() (*Stored, error) {
	if w.err != nil {
		return nil, w.err
	}
	w.err = errWritten
	s := &Stored{contentType: w.contentType, plain: variant{size: int(w.size), etag: tagOf(w.digest)}}
	if w.zip == nil {
		s.plain.parts = [][]byte{bytes.Clone(w.start)}
		return s, nil
	}
	if err := w.zip.Close(); err != nil {
		return nil, fmt.Errorf("compressing: %w", err)
	}
	s.zipped = newVariant(w.out.parts(), "gzip")
	w.zip, w.out = nil, nil
	if s.zipped.size < s.plain.size {
		return s, nil
	}
	// Compression did not shorten it, so the body itself is kept.
	body, err := s.inflated()
	if err != nil {
		return nil, err
	}
	s.plain.parts, s.zipped = [][]byte{body}, variant{}
	return s, nil
}

// blocks collects bytes without ever moving them: a slice that grows would be
// twice in memory each time.
type blocks struct {
	full [][]byte
	last []byte
	held int64
}

const (
	firstBlock = 4 << 10
	maxBlock   = 256 << 10
)

func (b *blocks) Write(p []byte) (int, error) {
	n := len(p)
	for len(p) > 0 {
		if len(b.last) == cap(b.last) {
			b.grow()
		}
		k := min(len(p), cap(b.last)-len(b.last))
		b.last = append(b.last, p[:k]...)
		p = p[k:]
	}
	return n, nil
}

func (b *blocks) grow() {
	size := firstBlock
	if b.last != nil {
		b.full = append(b.full, b.last)
		size = min(2*cap(b.last), maxBlock)
	}
	b.last = make([]byte, 0, size)
	b.held += int64(size)
}

// parts gives what was written, in no more memory than it takes.
func (b *blocks) parts() [][]byte { return append(b.full, bytes.Clone(b.last)) }
