package authn

import "hangar.io/glidepath/authz/token"

// Memory is an Authenticator that remembers for a moment whom it accepted.
type Memory interface {
	Authenticator
	// Remembered gives the caller of a token that Authenticate accepted and would
	// accept again for a read without asking anybody.
	Remembered(t token.Token) (*Caller, bool)
}

// remembered spares a read of a token that was accepted a moment ago the reading
// of its claims: whoever accepted it was picked by its issuer then. It tells no
// more than Authenticate would.
func (b ByIssuer) remembered(t token.Token, p Purpose) (*Caller, bool) {
	if p != ForRead {
		return nil, false
	}
	if c, ok := remembers(b.Default, t); ok {
		return c, true
	}
	for _, a := range b.Issuers {
		if c, ok := remembers(a, t); ok {
			return c, true
		}
	}
	return nil, false
}

func remembers(a Authenticator, t token.Token) (*Caller, bool) {
	m, ok := a.(Memory)
	if !ok {
		return nil, false
	}
	return m.Remembered(t)
}
