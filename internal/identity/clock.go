package identity

import (
	"errors"
	"time"

	"github.com/golang-jwt/jwt/v5"
)

// timeError says that authz signed a token, but for another time than the one
// that this process's clock shows.
type timeError struct {
	err             error
	issued, expires time.Time
}

func (e *timeError) Error() string { return e.err.Error() }
func (e *timeError) Unwrap() error { return e.err }

// timed tells a token of another time from one that nobody signed: claims are
// looked at only once the signature holds.
func timed(err error, c *Claims) error {
	if !errors.Is(err, jwt.ErrTokenExpired) && !errors.Is(err, jwt.ErrTokenUsedBeforeIssued) {
		return err
	}
	t := &timeError{err: err}
	if c.IssuedAt != nil {
		t.issued = c.IssuedAt.Time
	}
	if c.ExpiresAt != nil {
		t.expires = c.ExpiresAt.Time
	}
	return t
}
