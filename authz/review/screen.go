package review

import (
	"context"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/problem"
)

// Screen looks at a token before the cluster is asked about it. It is safe for
// concurrent use.
type Screen interface {
	// Look gives what it found, or a *problem.Error that refuses the token. It
	// can refuse and never accept: what it finds only ranks the question.
	Look(context.Context, token.Token, authn.Purpose) (Finding, error)
}

// Finding is what a Screen says of a token. The zero value says nothing.
type Finding struct {
	// Genuine says that the token's issuer signed it, so that it is not made up.
	Genuine bool
	// Accepted is told when the cluster accepts the token. It may be nil.
	Accepted func()
}

// screened is a refusal that cost no review: it is not remembered, so that a
// flood of such tokens takes no room from those that cost one.
type screened struct{ error }

func (s *screened) Unwrap() error { return s.error }

// admit gives the class of a question about a token. A token that was accepted
// before, or that its issuer signed, says nothing about now; but whoever floods
// the gateway has few of those, so they have slots of their own.
func (t *Tokens) admit(ctx context.Context, key token.Key, tok token.Token, p authn.Purpose) (class, func(), error) {
	found := Finding{Genuine: t.accepted.Known(key)}
	if !found.Genuine && t.screen != nil {
		var err error
		if found, err = t.screen.Look(ctx, tok, p); err != nil {
			refusal := problem.From(err)
			return 0, nil, refusal.WithCause(&screened{err})
		}
	}
	switch {
	case found.Genuine && p == authn.ForRead:
		return read, found.Accepted, nil
	case found.Genuine:
		return write, found.Accepted, nil
	case p == authn.ForRead:
		return unknownRead, found.Accepted, nil
	}
	return unknownWrite, found.Accepted, nil
}
