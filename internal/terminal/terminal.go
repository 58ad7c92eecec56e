// Package terminal owns what the words of others may do to an operator's
// terminal: nothing. A claim of a token, a line of a log or an answer of a server
// may hold characters that move the cursor, hide what stands there, or turn its
// order around; commands print such words through this package.
package terminal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"sigs.k8s.io/yaml"
)

// Plain says that a text does nothing but show: it is UTF-8 of letters, marks,
// digits, punctuation, symbols and spaces. Line breaks, tabs and characters that
// change the direction of writing are none of these.
func Plain(s string) bool {
	return utf8.ValidString(s) && !strings.ContainsFunc(s, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Line gives a text as it is when it is plain, and otherwise in quotes, as
// a string of Go, in which it is.
func Line(s string) string {
	if Plain(s) {
		return s
	}
	return strconv.Quote(s)
}

// Lines is Line for each line of a text of several.
func Lines(s string) string {
	lines := strings.Split(s, "\n")
	for i, l := range lines {
		lines[i] = Line(l)
	}
	return strings.Join(lines, "\n")
}

// JSON gives the same JSON value with all that is not plain in its strings
// escaped. Its line breaks stay.
func JSON(raw []byte) []byte {
	var out bytes.Buffer
	for _, r := range string(raw) { // what is not UTF-8 becomes U+FFFD
		switch {
		case r == '\n' || unicode.IsPrint(r):
			out.WriteRune(r)
		case r > 0xffff:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&out, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.Bytes()
}

// YAML gives a value as YAML. Where that would not be plain it is JSON, which
// kubectl takes as well, as in it everything can be escaped.
func YAML(v any) ([]byte, error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	if safe := JSON(raw); !bytes.Equal(safe, raw) {
		return append(safe, '\n'), nil
	}
	out, err := yaml.JSONToYAML(raw)
	if err != nil {
		return nil, fmt.Errorf("writing YAML: %w", err)
	}
	return out, nil
}
