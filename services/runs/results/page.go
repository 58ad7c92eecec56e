package results

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
	"time"
)

// page is one page of a list as it is read. Its value buffer is used again and
// again.
type page struct {
	d       *jsontext.Decoder
	maxText int // how long a value may be, in base64
	value   []byte

	records int    // how many the page had
	next    string // the token of the next page, empty when this is the last
}

// readPage reads one page and gives each of its records to take as it comes; an
// error of take ends it. Both spellings that servers use are read. What is not
// wholly a page is an error: a 200 proves nothing about the body.
func readPage(r io.Reader, limits Limits, take func(wireRecord) error) (*page, error) {
	p := newPage(r, limits)
	err := p.members(func(name string) error {
		switch name {
		case "records":
			return p.each(take)
		case "next_page_token", "nextPageToken":
			return p.text(&p.next)
		case "code", "error", "message":
			return errors.New("an error came as an answer")
		default:
			return p.d.SkipValue()
		}
	})
	if err != nil {
		return nil, err
	}
	return p, p.end()
}

// readRecord reads an answer that is one record.
func readRecord(r io.Reader, limits Limits) (wireRecord, error) {
	p := newPage(r, limits)
	w, err := p.record()
	if err != nil {
		return wireRecord{}, err
	}
	return w, p.end()
}

func newPage(r io.Reader, limits Limits) *page {
	maxText := (limits.RecordBytes+2)/3*4 + 1
	bounded := &clip{r: r, most: maxText, left: limits.PageBytes}
	return &page{d: jsontext.NewDecoder(bounded, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)), maxText: maxText}
}

// end reads the end of the answer.
func (p *page) end() error {
	switch _, err := p.d.ReadToken(); {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return syntax(err)
	default:
		return errors.New("the answer has more behind its end")
	}
}

// each reads the array of records; null counts as an empty one.
func (p *page) each(take func(wireRecord) error) error {
	start, err := p.d.ReadToken()
	if err != nil {
		return syntax(err)
	}
	switch start.Kind() {
	case jsontext.KindNull:
		return nil
	case jsontext.KindBeginArray:
	default:
		return errors.New("the answer's records are no list")
	}
	for p.d.PeekKind() != jsontext.KindEndArray {
		w, err := p.record()
		if err != nil {
			return err
		}
		p.records++
		if err := take(w); err != nil {
			return err
		}
	}
	_, err = p.d.ReadToken()
	return syntax(err)
}

// record reads one record. Its value is good until the next one is read.
func (p *page) record() (w wireRecord, err error) {
	err = p.members(func(name string) error {
		switch name {
		case "name":
			return p.text(&w.name)
		case "create_time", "createTime":
			return p.time(&w.stored)
		case "data":
			return p.data(&w)
		default:
			return p.d.SkipValue()
		}
	})
	return w, err
}

func (p *page) data(w *wireRecord) error {
	return p.members(func(name string) error {
		switch name {
		case "type":
			return p.text(&w.dataType)
		case "value":
			return p.readValue(w)
		default:
			return p.d.SkipValue()
		}
	})
}

// readValue reads the value of a record. One that is no string is passed over in
// parts and makes a bad record: whole, it may be as large as the page.
func (p *page) readValue(w *wireRecord) error {
	if p.d.PeekKind() != jsontext.KindString {
		w.value, w.clipped = nil, false
		return p.d.SkipValue()
	}
	raw, err := p.d.ReadValue()
	if err != nil {
		return syntax(err)
	}
	p.value = append(p.value[:0], raw...)
	w.value, w.clipped = p.value, len(raw)-len(`""`) >= p.maxText
	return nil
}

// members calls f for each member of the object that comes next, with its name.
// null counts as an object without any.
func (p *page) members(f func(name string) error) error {
	start, err := p.d.ReadToken()
	if err != nil {
		return syntax(err)
	}
	switch start.Kind() {
	case jsontext.KindNull:
		return nil
	case jsontext.KindBeginObject:
	default:
		return errors.New("the answer is not of the shape of a list")
	}
	for p.d.PeekKind() != jsontext.KindEndObject {
		name, err := p.d.ReadToken()
		if err != nil {
			return syntax(err)
		}
		if err := f(name.String()); err != nil {
			return syntax(err)
		}
	}
	_, err = p.d.ReadToken()
	return syntax(err)
}

// text reads a string; null counts as an empty one.
func (p *page) text(into *string) error {
	token, err := p.d.ReadToken()
	switch {
	case err != nil:
		return syntax(err)
	case token.Kind() == jsontext.KindString:
		*into = token.String()
	case token.Kind() != jsontext.KindNull:
		return errors.New("the answer is not of the shape of a list")
	}
	return nil
}

// time reads a time. One that is none counts as absent: it only orders.
func (p *page) time(into *time.Time) error {
	var text string
	if err := p.text(&text); err != nil {
		return err
	}
	if t, err := time.Parse(time.RFC3339Nano, text); err == nil {
		*into = t
	}
	return nil
}

// syntax takes what was read out of an error of the decoder, which quotes it.
func syntax(err error) error {
	if bad, ok := errors.AsType[*jsontext.SyntacticError](err); ok {
		if errors.Is(err, io.ErrUnexpectedEOF) {
			return io.ErrUnexpectedEOF
		}
		return fmt.Errorf("the answer is not JSON at byte %d", bad.ByteOffset)
	}
	return err
}

// unquote gives the bytes of a JSON string.
func unquote(quoted []byte) ([]byte, error) {
	if len(quoted) < 2 || quoted[0] != '"' {
		return nil, errors.New("not a string")
	}
	if inner := quoted[1 : len(quoted)-1]; !bytes.ContainsRune(inner, '\\') {
		return inner, nil
	}
	return jsontext.AppendUnquote(nil, quoted)
}
