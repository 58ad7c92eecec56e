package kubelist

import (
	"errors"
	"io"
)

var errTooLarge = errors.New("the list is larger than it may be")

// bounded reads r and takes what it reads off a budget, which several readers
// may share one after the other. Reading beyond it is an error, where
// io.LimitReader would make a cut list look complete.
type bounded struct {
	r    io.Reader
	left *int64
}

func (b *bounded) Read(p []byte) (int, error) {
	if *b.left < 0 {
		return 0, errTooLarge
	}
	// One byte more than is left tells a list that just fits from a larger one.
	if int64(len(p)) > *b.left+1 {
		p = p[:*b.left+1]
	}
	n, err := b.r.Read(p)
	if *b.left -= int64(n); *b.left < 0 {
		return n, errTooLarge
	}
	return n, err
}
