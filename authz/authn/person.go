package authn

import (
	"errors"

	"hangar.io/glidepath/internal/identity"
)

// PersonPrefix starts the user name of every person. Only the verification of a
// person's own ID token gives such a name.
const PersonPrefix = identity.PersonPrefix

// NewPerson makes a caller of a person whose ID token was verified. The user name
// of the facts is made of the login, which must be usable as one.
func NewPerson(login string, f Facts) (*Caller, error) {
	if !UsableLogin(login) {
		return nil, errors.New("no usable login")
	}
	f.Username = PersonPrefix + login
	return newCaller(f, Person), nil
}

// maxLogin is the length of the longest login that GitHub gives.
const maxLogin = 39

// UsableLogin says whether a text can be a person's login: letters, digits and
// hyphens as GitHub has them, and the underscore before an enterprise's code.
func UsableLogin(s string) bool {
	for _, c := range []byte(s) {
		switch {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9', c == '-', c == '_':
		default:
			return false
		}
	}
	return s != "" && len(s) <= maxLogin && s[0] != '-' && s[0] != '_'
}
