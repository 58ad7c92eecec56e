package results

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"google.golang.org/protobuf/encoding/protowire"
)

// pageToken is where a page ends, and of which list. Its encoding is the real
// server's: a protobuf message in base64 without padding.
type pageToken struct {
	parent, filter string
	uid            string
	field          string    // that the list is ordered by; empty for none
	at             time.Time // of the last row
	descending     bool
}

func (t pageToken) encode() string {
	var last []byte
	last = appendText(last, 1, t.uid)
	if t.field != "" {
		var at []byte
		at = protowire.AppendVarint(protowire.AppendTag(at, 1, protowire.VarintType), uint64(t.at.Unix()))
		at = protowire.AppendVarint(protowire.AppendTag(at, 2, protowire.VarintType), uint64(t.at.Nanosecond()))
		var order []byte
		order = appendText(order, 1, t.field)
		order = appendText(order, 2, string(at))
		if t.descending {
			order = protowire.AppendVarint(protowire.AppendTag(order, 3, protowire.VarintType), 1)
		}
		last = appendText(last, 2, string(order))
	}
	var all []byte
	all = appendText(all, 1, t.parent)
	all = appendText(all, 2, t.filter)
	all = appendText(all, 3, string(last))
	return base64.RawURLEncoding.EncodeToString(all)
}

func appendText(b []byte, field protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, field, protowire.BytesType), text)
}

// errWire is what the protobuf library says, no-break space and all.
var errWire = errors.New("proto:\u00a0cannot parse invalid wire-format data")

// decodeToken reads a token, or fails as the real server does: with 400 for what
// is not base64 and 500 for what is not the message.
func decodeToken(text string) (t pageToken, err error) {
	raw, err := base64.RawURLEncoding.DecodeString(strings.TrimRight(text, "="))
	if err != nil {
		return t, invalid("invalid page token: " + err.Error())
	}
	var last, order, at []byte
	err = fields(raw, map[protowire.Number]func([]byte, uint64){
		1: func(b []byte, _ uint64) { t.parent = string(b) },
		2: func(b []byte, _ uint64) { t.filter = string(b) },
		3: func(b []byte, _ uint64) { last = b },
	})
	if err == nil {
		err = fields(last, map[protowire.Number]func([]byte, uint64){
			1: func(b []byte, _ uint64) { t.uid = string(b) },
			2: func(b []byte, _ uint64) { order = b },
		})
	}
	if err == nil {
		err = fields(order, map[protowire.Number]func([]byte, uint64){
			1: func(b []byte, _ uint64) { t.field = string(b) },
			2: func(b []byte, _ uint64) { at = b },
			3: func(_ []byte, n uint64) { t.descending = n == 1 },
		})
	}
	var seconds, nanos uint64
	if err == nil {
		err = fields(at, map[protowire.Number]func([]byte, uint64){
			1: func(_ []byte, n uint64) { seconds = n },
			2: func(_ []byte, n uint64) { nanos = n },
		})
	}
	if err != nil {
		return t, &refusal{status: 500, code: codeInternal, message: errWire.Error()}
	}
	t.at = time.Unix(int64(seconds), int64(nanos)).UTC()
	return t, nil
}

// fields calls the function of each field of a message.
func fields(b []byte, known map[protowire.Number]func([]byte, uint64)) error {
	for len(b) > 0 {
		number, kind, n := protowire.ConsumeTag(b)
		if n < 0 {
			return errWire
		}
		b = b[n:]
		var text []byte
		var value uint64
		switch kind {
		case protowire.BytesType:
			text, n = protowire.ConsumeBytes(b)
		case protowire.VarintType:
			value, n = protowire.ConsumeVarint(b)
		default:
			n = protowire.ConsumeFieldValue(number, kind, b)
		}
		if n < 0 {
			return errWire
		}
		b = b[n:]
		if f := known[number]; f != nil {
			f(text, value)
		}
	}
	return nil
}

// check refuses a token of another list.
func (t pageToken) check(want pageToken) error {
	for _, c := range []struct{ what, expected, got string }{
		{"parent", t.parent, want.parent},
		{"filter", t.filter, want.filter},
		{"order by", t.field, want.field},
	} {
		if c.expected != c.got {
			return invalid(fmt.Sprintf("invalid page token: the provided %s differs from the %s used in the previous query\nexpected: %s\ngot: %s",
				c.what, c.what, c.expected, c.got))
		}
	}
	return nil
}
