package answer

import (
	"fmt"
	"io"
	"net/http"
)

// Form is a Stored as one call gets it. It is used once.
type Form struct {
	of    *Stored
	form  variant
	known bool   // the caller has it already
	whole *plain // the body in one piece, which Plains keeps; nil where there is none
	keeps *Plains
}

// For gives the form in which r, which was a GET, gets the body. A caller who takes
// gzip gets the bytes that are kept. For others the body is taken from plains, which
// may be nil, or else uncompressed on the way.
func (s *Stored) For(r *http.Request, plains *Plains) *Form {
	f := &Form{of: s, form: s.plain}
	zipped := s.compressed() && acceptsGzip(r.Header.Values("Accept-Encoding"))
	if zipped {
		f.form = s.zipped
	}
	f.known = matches(r.Header.Values("If-None-Match"), f.form.etag)
	if !f.known && !zipped && plains.takes(s) {
		f.whole, f.keeps = plains.find(s), plains
	}
	return f
}

// Held is what is in memory for as long as the form is being sent, whoever forgets it
// meanwhile: its size in bytes, and a key that forms have in common which hold the
// same. Without a body it is nothing.
func (f *Form) Held() (key any, bytes int) {
	kept := f.of.kept()
	switch {
	case f.known || len(kept.parts) == 0 || len(kept.parts[0]) == 0:
		return nil, 0
	case f.whole != nil:
		return f.whole, f.whole.size + kept.size // what it is made of too
	default:
		return &kept.parts[0][0], kept.size
	}
}

// Write answers with the form, as Answer.Write does. After an error the caller has less
// than Content-Length says: end the connection, so that nobody takes it for the whole.
func (f *Form) Write(w http.ResponseWriter) error {
	if !f.form.begin(w, f.known, f.of.contentType) {
		return nil
	}
	if f.form.encoding != "" {
		return f.form.send(w)
	}
	if f.whole != nil {
		body, err := f.whole.whole()
		if err != nil {
			f.keeps.drop(f.of)
			return err
		}
		f.of = nil // it may go
		if _, err := w.Write(body); err != nil {
			return fmt.Errorf("sending a body: %w", err)
		}
		return nil
	}
	in, err := f.of.Open()
	if err != nil {
		return err
	}
	defer func() { _ = in.Close() }() // out of memory
	if _, err := io.Copy(w, in); err != nil {
		return fmt.Errorf("sending a body: %w", err)
	}
	return nil
}
