package extauthz

import (
	"errors"
	"fmt"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"
)

// The fields of the messages that are read (envoy.service.auth.v3 and
// envoy.config.core.v3), by the path to them.
const (
	checkAttributes protowire.Number = 1

	attributesRequest    protowire.Number = 4
	attributesExtensions protowire.Number = 10

	requestHTTP protowire.Number = 2

	httpMethod    protowire.Number = 2
	httpHeaders   protowire.Number = 3
	httpPath      protowire.Number = 4
	httpHeaderMap protowire.Number = 13

	headerMapHeaders protowire.Number = 1

	headerKey      protowire.Number = 1
	headerValue    protowire.Number = 2
	headerRawValue protowire.Number = 3

	entryKey   protowire.Number = 1
	entryValue protowire.Number = 2
)

// parse reads a CheckRequest as it is on the wire, and of it what a decision
// needs: a message with all that Envoy sends would be a hundred allocations,
// most of them for what nobody looks at. It reads what the library would: a
// fuzz target compares the two.
func (c *call) parse(raw []byte) error {
	c.headers.fields, c.extensions = c.room[:0], c.extensionRoom[:0]
	return c.attributes(raw)
}

func (c *call) attributes(check []byte) error {
	return each(check, func(n protowire.Number, attributes []byte) error {
		if n != checkAttributes {
			return nil
		}
		return each(attributes, func(n protowire.Number, v []byte) error {
			switch n {
			case attributesRequest:
				return c.request(v)
			case attributesExtensions:
				name, value, err := entry(v)
				if err == nil {
					c.extensions.set(name, value)
				}
				return err
			}
			return nil
		})
	})
}

func (c *call) request(request []byte) error {
	return each(request, func(n protowire.Number, http []byte) error {
		if n != requestHTTP {
			return nil
		}
		return each(http, func(n protowire.Number, v []byte) (err error) {
			switch n {
			case httpMethod:
				c.method, err = text(v)
			case httpPath:
				c.path, err = text(v)
			case httpHeaders:
				var name, value string
				if name, value, err = entry(v); err == nil {
					c.headers.join(name, value)
				}
			case httpHeaderMap:
				err = c.headers.raw(v)
			}
			return err
		})
	})
}

// raw adds the headers of a HeaderMap.
func (h *headers) raw(headerMap []byte) error {
	return each(headerMap, func(n protowire.Number, header []byte) error {
		if n != headerMapHeaders {
			return nil
		}
		var f headerField
		var rawValue string
		err := each(header, func(n protowire.Number, v []byte) (err error) {
			switch n {
			case headerKey:
				f.name, err = text(v)
			case headerValue:
				f.value, err = text(v)
			case headerRawValue:
				rawValue = string(v) // bytes, and not text
			}
			return err
		})
		if f.value == "" {
			f.value = rawValue
		}
		h.fields = append(h.fields, f)
		return err
	})
}

// entry reads an entry of a map of texts.
func entry(raw []byte) (name, value string, err error) {
	err = each(raw, func(n protowire.Number, v []byte) (err error) {
		switch n {
		case entryKey:
			name, err = text(v)
		case entryValue:
			value, err = text(v)
		}
		return err
	})
	return name, value, err
}

// each visits the length-delimited fields of a message in their order. Fields
// of another kind are none that is read here, and are passed over as unknown.
func each(message []byte, visit func(protowire.Number, []byte) error) error {
	for len(message) > 0 {
		number, kind, n := protowire.ConsumeTag(message)
		if n < 0 {
			return malformed(n)
		}
		message = message[n:]
		if kind != protowire.BytesType {
			if n = protowire.ConsumeFieldValue(number, kind, message); n < 0 {
				return malformed(n)
			}
			message = message[n:]
			continue
		}
		v, n := protowire.ConsumeBytes(message)
		if n < 0 {
			return malformed(n)
		}
		message = message[n:]
		if err := visit(number, v); err != nil {
			return err
		}
	}
	return nil
}

func malformed(n int) error {
	return fmt.Errorf("reading a check: %w", protowire.ParseError(n))
}

var errNotText = errors.New("reading a check: a text that is not UTF-8")

// text is a string field. The names that every check holds are not made anew.
func text(v []byte) (string, error) {
	if len(v) <= maxFrequent {
		if s, ok := frequent[string(v)]; ok {
			return s, nil
		}
	}
	if !utf8.Valid(v) {
		return "", errNotText
	}
	return string(v), nil
}

// maxFrequent is the length of the longest of them.
const maxFrequent = len("x-glidepath-authorization")

var frequent = func() map[string]string {
	all := map[string]string{}
	for _, s := range []string{
		"GET", "POST", ":method", ":path", "authorization", "x-glidepath-authorization", "x-glidepath-on-behalf-of", "x-request-id",
		"traceparent", opExtension, allowExtension,
	} {
		all[s] = s
	}
	return all
}()
