package testkube

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"

	"hangar.io/glidepath/internal/upstream"
)

var (
	errBroken = errors.New("testkube's answer breaks off")
	errForm   = errors.New("testkube's answer is not of the form that it has")
)

// readJSON reads the JSON of an answer of at most so many bytes. Parts of it that a
// T has no field for are passed over, not held. An answer that breaks off is asked
// for again.
func readJSON[T any](ctx context.Context, c *Client, r request, most int64) (*T, error) {
	var v *T
	err := c.again(ctx, r, func() error {
		answer, err := c.try(ctx, r)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }() // what was read is judged by itself
		v = new(T)
		if err := decode(ctx, answer.Body, most, v); err != nil {
			answer.Reject()
			return err
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return v, nil
}

// decode reads a body to its end. Its errors quote nothing of it.
func decode(ctx context.Context, body io.Reader, most int64, v any) error {
	limited := &io.LimitedReader{R: body, N: most + 1}
	from := &noted{Reader: limited}
	err := json.UnmarshalRead(from, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	part, judges := v.(interface{ whole() bool })
	switch {
	case limited.N <= 0:
		return lastError{fmt.Errorf("testkube answered more than %d bytes", most)}
	case err == nil && judges && !part.whole():
		return lastError{errForm}
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("reading what testkube answered: %w", context.Cause(ctx))
	case errors.Is(err, upstream.ErrStalled):
		return lastError{fmt.Errorf("reading what testkube answered: %w", upstream.ErrStalled)}
	case errors.Is(err, context.DeadlineExceeded):
		return lastError{fmt.Errorf("reading what testkube answered: %w", context.DeadlineExceeded)}
	case from.err != nil || errors.Is(err, io.ErrUnexpectedEOF):
		return errBroken
	default:
		return lastError{errForm}
	}
}

// noted remembers what ended the reading before the end.
type noted struct {
	io.Reader

	err error
}

// Read reads.
func (n *noted) Read(p []byte) (int, error) {
	read, err := n.Reader.Read(p)
	if err != nil && !errors.Is(err, io.EOF) {
		n.err = err
	}
	return read, err //nolint:wrapcheck // it is the reader's own
}
