package results

import (
	"bytes"
	"errors"
	"io"
)

// clip passes JSON on with every string, number and white space cut to most bytes or
// a few more, so that whoever reads it token by token holds no more than that.
type clip struct {
	r    io.Reader
	most int
	left int64 // how much may still be read

	inString bool
	length   int  // of what stays of the string, number or white space
	escape   int  // how many bytes of an escape are to come; escapeKind when the next one says
	goes     bool // the escape does not stay

	of    class // of the last byte, outside of strings
	digit bool  // what stays of a number ends in a digit, so that it may end there
}

// escapeKind is before the byte behind a backslash.
const escapeKind = -1

var errTooLarge = final("the answer is larger than what is read")

// Read reads a part of the JSON.
func (c *clip) Read(p []byte) (int, error) {
	for {
		if c.left <= 0 {
			return 0, c.overrun()
		}
		n, err := c.r.Read(p[:min(int64(len(p)), c.left)])
		c.left -= int64(n)
		if kept := c.cut(p[:n]); kept > 0 || err != nil {
			return kept, err
		}
	}
}

// overrun tells an answer that ends where the limit is from one that goes on.
func (c *clip) overrun() error {
	switch n, err := io.ReadFull(c.r, make([]byte, 1)); {
	case n > 0:
		return errTooLarge
	case errors.Is(err, io.EOF):
		return io.EOF
	default:
		return err
	}
}

// cut moves what stays of p to its beginning and gives its length.
func (c *clip) cut(p []byte) int {
	kept := 0
	for at := 0; at < len(p); {
		n, stays := c.run(p[at:])
		if stays {
			kept += copy(p[kept:], p[at:at+n])
		}
		at += n
	}
	return kept
}

// run gives the length of what p begins with and stays, or goes, as one.
func (c *clip) run(p []byte) (n int, stays bool) {
	switch {
	case !c.inString:
		return c.outside(p)
	case c.escape != 0:
		return c.escaped(p[0])
	case p[0] == '"':
		c.inString, c.of = false, other
		return 1, true
	case p[0] == '\\':
		c.escape, c.goes = escapeKind, c.length >= c.most
	default:
		if n = bytes.IndexAny(p, `"\`); n < 0 {
			n = len(p)
		}
		if c.length >= c.most {
			return n, false
		}
		n = min(n, c.most-c.length)
		c.length += n
		return n, true
	}
	return c.part()
}

// class is what a byte may be a part of, outside of strings.
type class int

const (
	other class = iota // no more than a few bytes of it are one token
	quote
	space
	number
)

func classOf(b byte) class {
	switch b {
	case '"':
		return quote
	case ' ', '\t', '\r', '\n':
		return space
	case '0', '1', '2', '3', '4', '5', '6', '7', '8', '9', '+', '-', '.', 'e', 'E':
		return number
	default:
		return other
	}
}

// outside takes what begins p outside of strings and is of one class.
func (c *clip) outside(p []byte) (n int, stays bool) {
	of := classOf(p[0])
	if of == quote {
		c.inString, c.length = true, 0
		return 1, true
	}
	if of != c.of {
		c.of, c.length, c.digit = of, 0, false
	}
	for n < len(p) && classOf(p[n]) == of {
		n++
	}
	switch {
	case of == other:
		return n, true
	case c.length >= c.most && (of == space || c.digit):
		return n, false
	}
	n = min(n, max(1, c.most-c.length))
	c.length += n
	c.digit = '0' <= p[n-1] && p[n-1] <= '9'
	return n, true
}

// escaped takes a byte of an escape, which stays or goes as a whole.
func (c *clip) escaped(b byte) (n int, stays bool) {
	switch {
	case c.escape != escapeKind:
		c.escape--
	case b == 'u':
		c.escape = 4
	default:
		c.escape = 0
	}
	return c.part()
}

func (c *clip) part() (n int, stays bool) {
	if !c.goes {
		c.length++
	}
	return 1, !c.goes
}
