package kubelist

import (
	"bytes"
	"encoding/json/jsontext"
	"errors"
	"fmt"
	"slices"
)

// Kind says what a list holds.
type Kind struct {
	// APIVersion and Kind are those of the objects, Resource their name in
	// paths: tekton.dev/v1, PipelineRun and pipelineruns.
	APIVersion, Kind, Resource string
}

// object is what is found on the way through an object's JSON.
type object struct {
	Meta
	apiVersion, kind string // empty when absent
	members          int    // where the first member begins
	cutFrom, cutTo   int    // metadata.managedFields with one comma; equal when absent
}

// add puts an object into l as it is to be shown.
func (k Kind) add(l *List, raw jsontext.Value) error {
	m, shown, err := k.show(raw)
	if err != nil {
		return err
	}
	l.add(m, shown)
	return nil
}

// show gives an object as it is to be shown: raw itself where nothing is to be
// changed.
func (k Kind) show(raw jsontext.Value) (Meta, []byte, error) {
	o, err := scan(raw)
	if err != nil {
		return Meta{}, nil, err
	}
	switch {
	case o.Name == "" || o.Namespace == "":
		return Meta{}, nil, errors.New("an object without a name or namespace")
	case o.kind != "" && o.kind != k.Kind, o.apiVersion != "" && o.apiVersion != k.APIVersion:
		return Meta{}, nil, fmt.Errorf("an object of another kind: %q %q", o.apiVersion, o.kind)
	case o.kind == "" || o.apiVersion == "" || o.cutFrom != o.cutTo:
		return o.Meta, k.rewrite(raw, o), nil
	}
	return o.Meta, raw, nil
}

// WithoutManagedFields gives an object's JSON without its
// metadata.managedFields, and with every other byte as it is: raw itself where
// there are none. raw is valid JSON.
func WithoutManagedFields(raw []byte) ([]byte, error) {
	o, err := scan(raw)
	if err != nil {
		return nil, err
	}
	if o.cutFrom == o.cutTo {
		return raw, nil
	}
	return slices.Concat(raw[:o.cutFrom], raw[o.cutTo:]), nil
}

// rewrite makes the changes that scan found necessary. Every other byte stays.
func (k Kind) rewrite(raw []byte, o object) []byte {
	out := make([]byte, 0, len(raw)+len(k.APIVersion)+len(k.Kind)+len(`"apiVersion":"","kind":"",`))
	out = append(out, raw[:o.members]...)
	// An object has a name, so a member follows.
	if o.apiVersion == "" {
		out = append(append(append(out, `"apiVersion":"`...), k.APIVersion...), `",`...)
	}
	if o.kind == "" {
		out = append(append(append(out, `"kind":"`...), k.Kind...), `",`...)
	}
	out = append(out, raw[o.members:o.cutFrom]...)
	return append(out, raw[o.cutTo:]...)
}

// scan reads an object's own members and those of its metadata, and skips all
// else. raw is valid JSON, without names that occur twice.
func scan(raw jsontext.Value) (object, error) {
	d := jsontext.NewDecoder(bytes.NewBuffer(raw), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	o := object{members: bytes.IndexByte(raw, '{') + 1}
	o.cutFrom, o.cutTo = o.members, o.members
	err := eachMember(d, func(name string, _ int) error {
		switch name {
		case "apiVersion":
			return readString(d, &o.apiVersion)
		case "kind":
			return readString(d, &o.kind)
		case "metadata":
			return o.scanMetadata(d, raw)
		default:
			return d.SkipValue()
		}
	})
	return o, err
}

func (o *object) scanMetadata(d *jsontext.Decoder, raw []byte) error {
	brace := true
	return eachMember(d, func(name string, start int) error {
		first := brace
		brace = false
		switch name {
		case "namespace":
			return readString(d, &o.Namespace)
		case "name":
			return readString(d, &o.Name)
		case "uid":
			return readString(d, &o.UID)
		case "resourceVersion":
			return readString(d, &o.ResourceVersion)
		}
		if err := d.SkipValue(); err != nil {
			return err
		}
		if name == "managedFields" {
			o.cutFrom, o.cutTo = start, int(d.InputOffset())
			if first {
				o.cutTo += commaLen(raw[o.cutTo:])
			}
		}
		return nil
	})
}

// commaLen is how far the comma reaches that rest begins with after white
// space, 0 when there is none.
func commaLen(rest []byte) int {
	trimmed := bytes.TrimLeft(rest, " \t\r\n")
	if len(trimmed) == 0 || trimmed[0] != ',' {
		return 0
	}
	return len(rest) - len(trimmed) + 1
}

// eachMember calls visit for every member of the object that d comes to next.
// visit reads the member's value; start is where the member begins: right
// behind the one before, so with its comma, or behind the brace.
func eachMember(d *jsontext.Decoder, visit func(name string, start int) error) error {
	brace, err := d.ReadToken()
	if err != nil {
		return err
	}
	if brace.Kind() != jsontext.KindBeginObject {
		return fmt.Errorf("a value of kind %q where an object belongs", brace.Kind())
	}
	for {
		start := int(d.InputOffset())
		name, err := d.ReadToken()
		if err != nil {
			return err
		}
		if name.Kind() == jsontext.KindEndObject {
			return nil
		}
		if err := visit(name.String(), start); err != nil {
			return err
		}
	}
}

// readString reads a string into s; null leaves it as it is.
func readString(d *jsontext.Decoder, s *string) error {
	t, err := d.ReadToken()
	if err != nil {
		return err
	}
	switch t.Kind() {
	case jsontext.KindString:
		*s = t.String()
	case jsontext.KindNull:
	default:
		return fmt.Errorf("a value of kind %q where a string belongs", t.Kind())
	}
	return nil
}
