// Package paging owns continue tokens: what a paged list gives a caller so
// that the next page begins after the last item of this one. A token holds a
// position and no offset, so items that come or go between two pages make no
// other item appear twice or not at all.
package paging

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"hangar.io/glidepath/internal/seal"
)

// MaxToken bounds a token in bytes, as given out and as taken.
const MaxToken = 1024

// ErrToken says that a token was not given out for this list: it is malformed,
// foreign, or belongs to another operation, scope, filter or page size.
var ErrToken = errors.New("not a continue token of this list")

// Position is the sort key of the last item given, from its most to its least
// significant part: namespace and name, for instance.
type Position []string

// Compare orders positions as the list is ordered.
func (p Position) Compare(q Position) int { return slices.Compare(p, q) }

// List is what a token is bound to. Tokens of equal Lists are interchangeable,
// those of different ones are not.
type List struct {
	// Operation is the operationId.
	Operation string
	// Scope is whose items are listed: a namespace's UID, or empty for all.
	Scope string
	// Limit is the size of a page.
	Limit int
	// Filters are the remaining parameters that select items, in a fixed order.
	Filters []string
}

// Tokens makes and reads tokens. It is safe for concurrent use; every replica
// with the same keys reads what another made.
type Tokens struct {
	sealer *seal.Sealer
}

// New gives the tokens of a service.
func New(keys seal.Keys) (*Tokens, error) {
	sealer, err := seal.New(keys, "continue token")
	if err != nil {
		return nil, fmt.Errorf("making continue tokens: %w", err)
	}
	return &Tokens{sealer: sealer}, nil
}

// Give makes the token of the page that follows last. Equal lists and
// positions have equal tokens, so that equal pages have equal bytes.
func (t *Tokens) Give(list List, last Position) (string, error) {
	place, err := list.place()
	if err != nil {
		return "", err
	}
	plain, err := json.Marshal(last)
	if err != nil {
		return "", fmt.Errorf("making a continue token: %w", err)
	}
	token := base64.RawURLEncoding.EncodeToString(t.sealer.SealSame(nil, plain, place))
	if len(token) > MaxToken {
		return "", fmt.Errorf("making a continue token: %d bytes, more than %d", len(token), MaxToken)
	}
	return token, nil
}

// Take gives the position of a token of this list, or ErrToken.
func (t *Tokens) Take(list List, token string) (Position, error) {
	// The decoder skips line ends; a token has one form only.
	if token == "" || len(token) > MaxToken || strings.ContainsAny(token, "\r\n") {
		return nil, ErrToken
	}
	place, err := list.place()
	if err != nil {
		return nil, err
	}
	sealed, err := base64.RawURLEncoding.Strict().DecodeString(token)
	if err != nil {
		return nil, ErrToken
	}
	plain, err := t.sealer.Open(nil, sealed, place)
	if err != nil {
		return nil, ErrToken
	}
	var last Position
	if err := json.Unmarshal(plain, &last); err != nil || len(last) == 0 {
		return nil, ErrToken
	}
	return last, nil
}

// place is the list in one unambiguous string.
func (l List) place() (string, error) {
	raw, err := json.Marshal(l)
	if err != nil {
		return "", fmt.Errorf("naming a list: %w", err)
	}
	return string(raw), nil
}
