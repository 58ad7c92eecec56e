// Package authn owns who a caller is: the facts that a verified token gives,
// and the choice of who verifies it.
package authn

import (
	"context"

	"hangar.io/glidepath/authz/token"
)

// Purpose is what a question to the cluster is asked for. The zero value is the
// careful one.
type Purpose int

const (
	// ForWrite asks for a T1 or T2 call: the answer is as new as the call,
	// taken from no cache and from no question that was asked before it.
	ForWrite Purpose = iota
	// ForRead asks for a T0 call: an answer a few seconds old will do.
	ForRead
)

// Authenticator says whose token it is. It is safe for concurrent use, and the
// Caller it returns is shared: read it only.
//
// The error is a *problem.Error: GP-AUTH-002 when the token is not accepted,
// GP-AUTH-005 when it is a person's who may not sign in, GP-API-502 when nobody
// could tell. There is a Caller exactly when there is no
// error.
type Authenticator interface {
	Authenticate(ctx context.Context, t token.Token, p Purpose) (*Caller, error)
}

// ByIssuer picks the authenticator of a token by the issuer that the token
// names. The name is unverified: a token can choose who judges it, so each
// authenticator must verify everything by itself and must refuse a token of
// another issuer. A token that names several, or is otherwise broken, belongs to
// the first known one that it names exactly. A name in any other spelling is
// unknown, and Default judges the token: it must refuse people's names itself.
type ByIssuer struct {
	// Issuers are the authenticators of the issuers that are known here.
	Issuers map[string]Authenticator
	// Default judges every other token, those that are no JWT included.
	Default Authenticator
}

// Authenticate asks the token's authenticator.
func (b ByIssuer) Authenticate(ctx context.Context, t token.Token, p Purpose) (*Caller, error) {
	if len(b.Issuers) > 0 { // else nobody needs the claims
		if c, ok := b.remembered(t, p); ok {
			return c, nil
		}
		for _, issuer := range t.Issuers() {
			if a, ok := b.Issuers[issuer]; ok {
				return a.Authenticate(ctx, t, p)
			}
		}
	}
	return b.Default.Authenticate(ctx, t, p)
}
