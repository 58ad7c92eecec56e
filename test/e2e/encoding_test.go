package e2e_test

import (
	"bytes"
	"compress/gzip"
	"io"
	"testing"
)

// uncompressed gives an answer's content without its encoding.
func uncompressed(t *testing.T, a answer) []byte {
	t.Helper()
	if a.header.Get("Content-Encoding") != "gzip" || len(a.body) == 0 {
		return a.body
	}
	z, err := gzip.NewReader(bytes.NewReader(a.body))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(io.LimitReader(z, 64<<20))
	if err != nil {
		t.Fatal(err)
	}
	return b
}
