package kubelist

import (
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"io"
)

// decodePage reads one page of a list from r, object by object, and adds what
// it holds to l. It gives the token of the next page, empty when this is the
// last. What is not wholly a list of this kind is an error: an API server's 200
// proves nothing about the body. l may have got objects by then.
func (k Kind) decodePage(r io.Reader, l *List) (next string, err error) {
	d := jsontext.NewDecoder(r)
	var apiVersion, kind string
	items := false
	err = eachMember(d, func(name string, _ int) error {
		switch name {
		case "apiVersion":
			return readString(d, &apiVersion)
		case "kind":
			return readString(d, &kind)
		case "metadata":
			next, err = l.readMetadata(d)
			return err
		case "items":
			items = true
			return k.decodeItems(d, l)
		default:
			return d.SkipValue()
		}
	})
	if err != nil {
		return "", fmt.Errorf("reading a list: %w", err)
	}
	if !items || kind != k.Kind+"List" || apiVersion != k.APIVersion {
		return "", fmt.Errorf("reading a list: got %q %q instead of a list of %s", apiVersion, kind, k.Kind)
	}
	switch _, err := d.ReadToken(); {
	case errors.Is(err, io.EOF):
		return next, nil
	case err != nil:
		return "", fmt.Errorf("reading a list: behind its end: %w", err)
	default:
		return "", errors.New("reading a list: more behind its end")
	}
}

// readMetadata reads a page's metadata. All pages of a list have the version of
// the first.
func (l *List) readMetadata(d *jsontext.Decoder) (next string, err error) {
	err = eachMember(d, func(name string, _ int) error {
		switch name {
		case "continue":
			return readString(d, &next)
		case "resourceVersion":
			return readString(d, &l.version)
		default:
			return d.SkipValue()
		}
	})
	return next, err
}

// decodeItems reads the array of objects; null counts as an empty one.
func (k Kind) decodeItems(d *jsontext.Decoder, l *List) error {
	start, err := d.ReadToken()
	if err != nil {
		return err
	}
	switch start.Kind() {
	case jsontext.KindNull:
		return nil
	case jsontext.KindBeginArray:
	default:
		return fmt.Errorf("items of kind %q", start.Kind())
	}
	for d.PeekKind() != jsontext.KindEndArray {
		raw, err := d.ReadValue()
		if err != nil {
			return err
		}
		if err := k.add(l, raw); err != nil {
			return fmt.Errorf("item %d: %w", l.Len(), err)
		}
	}
	_, err = d.ReadToken()
	return err
}
