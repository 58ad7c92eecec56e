package answer

import (
	"bytes"
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"hash"
	"io"
	"net/http"
	"strconv"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// JSON is the content type of most answers.
const JSON = "application/json"

// minCompressed is the shortest body worth compressing, in bytes.
const minCompressed = 1 << 10

// Answer is one body, shared by every call that gets it. The compressed form
// is made once, when the first caller takes it. It is safe for concurrent use.
type Answer struct {
	plain variant
	gzip  func() variant
}

// variant is one form of the body.
type variant struct {
	parts    [][]byte
	size     int
	etag     string
	encoding string // Content-Encoding, empty for the body itself
}

// New makes an answer of a JSON body that is given in parts, which are sent one
// after the other. The answer keeps the parts: nobody may change them again.
func New(parts ...[]byte) *Answer {
	a := &Answer{plain: newVariant(parts, "")}
	a.gzip = sync.OnceValue(func() variant { return compress(a.plain) })
	return a
}

func newVariant(parts [][]byte, encoding string) variant {
	v := variant{parts: parts, encoding: encoding}
	hash := sha256.New()
	for _, p := range parts {
		v.size += len(p)
		hash.Write(p)
	}
	v.etag = tagOf(hash)
	return v
}

// tagOf gives the entity tag of the bytes that went into hash. 144 bits are
// more than enough against chance, and nobody gains by making two bodies of
// one tag.
func tagOf(hash hash.Hash) string {
	return `"` + base64.RawURLEncoding.EncodeToString(hash.Sum(nil)[:18]) + `"`
}

// compress gives the gzip form, or plain again when that is no shorter. The
// same body has the same form in every process.
func compress(plain variant) variant {
	if plain.size < minCompressed {
		return plain
	}
	var out bytes.Buffer
	// The level is a valid one and a buffer takes every write, so none of
	// these can fail; if one did, the body itself is a right answer too.
	w, err := gzip.NewWriterLevel(&out, gzip.BestSpeed)
	if err != nil {
		return plain
	}
	for _, p := range plain.parts {
		if _, err := w.Write(p); err != nil {
			return plain
		}
	}
	if err := w.Close(); err != nil || out.Len() >= plain.size {
		return plain
	}
	return newVariant([][]byte{bytes.Clone(out.Bytes())}, "gzip")
}

// Write answers r, which was a GET: 304 when the caller says that it has this
// very form, else 200 with the body.
func (a *Answer) Write(w http.ResponseWriter, r *http.Request) {
	v := a.plain
	if acceptsGzip(r.Header.Values("Accept-Encoding")) {
		v = a.gzip()
	}
	v.write(w, r, JSON)
}

// write answers with one form of a body.
func (v variant) write(w http.ResponseWriter, r *http.Request, contentType string) {
	if v.begin(w, matches(r.Header.Values("If-None-Match"), v.etag), contentType) {
		_ = v.send(w) // or the caller left
	}
}

// send writes the body.
func (v variant) send(w io.Writer) error {
	for _, p := range v.parts {
		if _, err := w.Write(p); err != nil {
			return fmt.Errorf("sending a body: %w", err)
		}
	}
	return nil
}

// begin writes what comes before the body. It is false when none follows, since the
// caller has it.
func (v variant) begin(w http.ResponseWriter, known bool, contentType string) bool {
	h := w.Header()
	h.Set("ETag", v.etag)
	// A caller may keep the answer, but asks each time: whether it may still
	// read it is decided with every call.
	h.Set("Cache-Control", "private, no-cache")
	h.Add("Vary", "Accept-Encoding")
	if known {
		w.WriteHeader(http.StatusNotModified)
		return false
	}
	h.Set("Content-Type", contentType)
	h.Set("Content-Length", strconv.Itoa(v.size))
	if v.encoding != "" {
		h.Set("Content-Encoding", v.encoding)
	}
	w.WriteHeader(http.StatusOK)
	return true
}
