package answer

import (
	"fmt"
	"io"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// Stored is one body, kept in its compressed form alone, or as it is where
// compression does not shorten it. It never changes and is safe for concurrent
// use. A Writer makes it.
type Stored struct {
	contentType string
	plain       variant // without parts when there is a compressed form
	zipped      variant // without encoding when there is none
}

// compressed says whether the body is kept compressed.
func (s *Stored) compressed() bool { return s.zipped.encoding != "" }

// kept is the form that is kept.
func (s *Stored) kept() variant {
	if s.compressed() {
		return s.zipped
	}
	return s.plain
}

// Size is how many bytes it takes in memory, roughly.
func (s *Stored) Size() int { return s.kept().size + 256 }

// ContentType is that of the body.
func (s *Stored) ContentType() string { return s.contentType }

// Len is the length of the body itself, in bytes.
func (s *Stored) Len() int { return s.plain.size }

// inflated gives the body in one piece.
func (s *Stored) inflated() ([]byte, error) {
	in, err := s.Open()
	if err != nil {
		return nil, err
	}
	defer in.Close()
	body := make([]byte, s.plain.size)
	if _, err := io.ReadFull(in, body); err != nil {
		return nil, fmt.Errorf("uncompressing: %w", err)
	}
	return body, nil
}

// Open gives the body itself, for those who read what is in it. Close it, once.
func (s *Stored) Open() (io.ReadCloser, error) {
	kept := &reader{parts: s.kept().parts}
	if !s.compressed() {
		return io.NopCloser(kept), nil
	}
	zip, _ := readers.Get().(*gzip.Reader)
	if zip == nil {
		zip = new(gzip.Reader)
	}
	if err := zip.Reset(kept); err != nil {
		return nil, fmt.Errorf("uncompressing: %w", err)
	}
	return &unzipped{Reader: io.LimitReader(zip, int64(s.plain.size)), zip: zip, kept: kept}, nil
}

// readers are decompressors that nobody uses: each takes 40 KiB.
var readers sync.Pool

// unzipped gives its decompressor back when it is closed.
type unzipped struct {
	io.Reader
	zip  *gzip.Reader
	kept *reader
}

func (u *unzipped) Close() error {
	u.kept.parts = nil // the decompressor holds on to where it read from
	readers.Put(u.zip)
	u.zip, u.Reader = nil, eof{}
	return nil
}

// eof is where a closed reader reads on.
type eof struct{}

func (eof) Read([]byte) (int, error) { return 0, io.EOF }

// reader reads parts one after the other. That it reads single bytes too spares
// the decompressor a buffer.
type reader struct {
	parts [][]byte
	at    int // in the first of them
}

// rest gives what is left of the first part that is not read, or nothing.
func (r *reader) rest() []byte {
	for len(r.parts) > 0 && r.at == len(r.parts[0]) {
		r.parts, r.at = r.parts[1:], 0
	}
	if len(r.parts) == 0 {
		return nil
	}
	return r.parts[0][r.at:]
}

func (r *reader) Read(p []byte) (int, error) {
	rest := r.rest()
	if rest == nil {
		return 0, io.EOF
	}
	n := copy(p, rest)
	r.at += n
	return n, nil
}

func (r *reader) ReadByte() (byte, error) {
	rest := r.rest()
	if rest == nil {
		return 0, io.EOF
	}
	r.at++
	return rest[0], nil
}
