package extauthz

import (
	"strings"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/ticket"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/renewal"
)

// StreamClaims are the identity of a call whose answer stays open, at its start
// and at each renewal: that of a read, and when the caller's token ends.
func StreamClaims(d *decision.Decision, tok token.Token, now time.Time) identity.Claims {
	c := claims(d, now, readLife)
	// Nobody has verified it, but who accepted the token holds it to it. A token
	// that claims less than it has ends its own stream.
	if expiry := tok.Unverified().Expiry; !expiry.IsZero() {
		c.TokenExpiry = jwt.NewNumericDate(expiry)
	}
	return c
}

// stream gives the answer to an allowed call whose answer stays open: with an
// identity of its own, and the ticket with which its backend has it decided
// again.
func (i *issuer) stream(d *decision.Decision, r decision.Request, now time.Time) (answer, error) {
	tok, err := token.FromHeaders(r.Headers)
	if err != nil {
		return nil, err
	}
	sealed, err := i.tickets.Seal(ticket.New(d, r, tok, now))
	if err != nil {
		return nil, err
	}
	return i.answer(d, StreamClaims(d, tok, now), overwrite(strings.ToLower(renewal.Header), sealed))
}
