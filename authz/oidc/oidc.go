// Package oidc owns how a person's ID token becomes a caller: that the token is
// its issuer's, for this API and still good, who the person is, and whether the
// person is among those who may sign in. Nothing of an ID token ever goes to the
// API server.
package oidc

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/authz/ttl"
	"hangar.io/glidepath/internal/problem"
)

// How long a verified token is remembered, for reads alone, and how many are.
const (
	verifiedTTL  = 10 * time.Second
	verifiedSize = 4096
)

// Keys tells whether the issuer signed a token; a jwks.Set does.
type Keys interface {
	Verify(ctx context.Context, t token.Token, p authn.Purpose, news time.Duration) (payload []byte, err error)
}

// Config is what an Authenticator needs, all of it.
type Config struct {
	Issuer, Audience string
	Allowed          *Allowed
	Keys             Keys
	Metrics          prometheus.Registerer
}

// Authenticator authenticates people by the ID tokens of one issuer. It is an
// authn.Authenticator, safe for concurrent use.
type Authenticator struct {
	rules   rules
	allowed *Allowed
	keys    Keys
	keyer   *token.Keyer
	metrics metrics

	verified *ttl.Cache[token.Key, *authn.Caller]
}

// New gives an Authenticator.
func New(c Config) (*Authenticator, error) {
	verified, err := ttl.NewCache[token.Key, *authn.Caller](verifiedSize)
	if err != nil {
		return nil, err
	}
	if err := c.Metrics.Register(verified.Entries("person")); err != nil {
		return nil, fmt.Errorf("registering metrics: %w", err)
	}
	return &Authenticator{
		rules: rules{issuer: c.Issuer, audience: c.Audience}, allowed: c.Allowed, keys: c.Keys,
		keyer: token.NewKeyer(), metrics: newMetrics(c.Metrics), verified: verified,
	}, nil
}

// Authenticate says which person a token is of. Besides the errors of every
// authn.Authenticator it returns GP-AUTH-005 for a person who may not sign in.
// What is remembered answers reads alone; of a token that is not accepted
// nothing is remembered.
func (a *Authenticator) Authenticate(ctx context.Context, t token.Token, p authn.Purpose) (*authn.Caller, error) {
	key := a.keyer.Key(t)
	now := time.Now()
	if p == authn.ForRead {
		if c, ok := a.recall(key, now); ok {
			return c, nil
		}
	}
	c, expiry, err := a.verify(ctx, t, p)
	a.metrics.count(err)
	if err != nil {
		return nil, err
	}
	end := now.Add(verifiedTTL)
	if expiry.Before(end) {
		end = expiry
	}
	a.verified.Put(key, c, end)
	return c, nil
}

// Remembered says whose token t is, as authn.Memory has it.
func (a *Authenticator) Remembered(t token.Token) (*authn.Caller, bool) {
	return a.recall(a.keyer.Key(t), time.Now())
}

func (a *Authenticator) recall(key token.Key, now time.Time) (*authn.Caller, bool) {
	c, ok := a.verified.Get(key, now)
	if ok {
		a.metrics.remembered.Inc()
	}
	return c, ok
}

// verify judges a token anew.
func (a *Authenticator) verify(ctx context.Context, t token.Token, p authn.Purpose) (*authn.Caller, time.Time, error) {
	payload, err := a.keys.Verify(ctx, t, p, jwks.FetchTimeout)
	switch {
	case errors.Is(err, jwks.ErrSignature):
		return nil, time.Time{}, refused("the ID token is not signed by its issuer", err)
	case errors.Is(err, jwks.ErrUnknownKey):
		return nil, time.Time{}, refused("the ID token is signed with a key that its issuer does not have", err)
	case errors.Is(err, jwks.ErrNoKeys):
		return nil, time.Time{}, problem.New(problem.SourceFailed, "the ID token could not be verified: its issuer's keys are not known").WithCause(err)
	case err != nil:
		return nil, time.Time{}, problem.New(problem.SourceFailed, "the ID token's signature could not be verified").WithCause(err)
	}
	c, err := a.rules.judge(payload, time.Now())
	if err != nil {
		return nil, time.Time{}, refused(err.Error(), nil)
	}
	person, err := authn.NewPerson(c.Login, authn.Facts{
		// The subject stays when a login is given to somebody else: no decision is
		// ever shared between the two.
		UID: c.Subject,
		// As the API server does for whoever it authenticates. The token's own
		// groups are not the cluster's.
		Groups:    []string{authn.Everyone},
		Audiences: []string{a.rules.audience},
	})
	if err != nil {
		return nil, time.Time{}, refused("the ID token has no usable preferred_username", err)
	}
	if err := a.allowed.admit(c); err != nil {
		return nil, time.Time{}, err
	}
	return person, c.expiry(), nil
}

func refused(message string, cause error) error {
	return problem.New(problem.AuthBadToken, message).
		WithHint("sign in again, as with `glidepath login`, for this API's own client").WithCause(cause)
}
