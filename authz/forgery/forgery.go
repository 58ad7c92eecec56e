// Package forgery tells made-up tokens of the cluster's own issuer by their
// signatures, so that a flood of them costs the API server nothing. It only
// refuses: a token that the cluster signed may still be that of an account that
// is gone, and only the cluster knows.
package forgery

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/time/rate"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/authz/ttl"
	"hangar.io/glidepath/internal/problem"
)

const (
	// longOver is how long a token must have been expired to be refused without
	// a review: more than clocks differ, since it is the API server's that counts.
	longOver = 10 * time.Minute
	// newsWait bounds the wait for the keys to be read again, when a token names
	// one that is not known.
	newsWait = 500 * time.Millisecond

	// How many tokens with a key that the issuer does not publish are reviewed:
	// so many a second, and so many at once after a pause.
	unknownRate  = 1
	unknownBurst = 10
	// A key that is not published and still signs tokens that the cluster accepts
	// is known for so long, and so many of them are.
	hiddenTTL  = time.Hour
	hiddenSize = 256
)

// Config is what a Filter needs. All fields are required.
type Config struct {
	// Cluster is how to reach the API server.
	Cluster *rest.Config
	// Keys are the metrics of key sets.
	Keys    *jwks.Metrics
	Metrics prometheus.Registerer
}

// Filter is a review.Screen. It is safe for concurrent use.
type Filter struct {
	issuer  *cluster
	keys    *jwks.Set
	metrics *metrics
	// hidden are keys that the issuer does not publish, by which the cluster
	// accepted a token: those of another cluster whose issuer has the same name,
	// for instance, which an authentication webhook knows.
	hidden  *ttl.Cache[string, struct{}]
	unknown *rate.Limiter
}

// New gives a Filter that knows no keys yet and lets everything through. Close
// it when done.
func New(c Config) (*Filter, error) {
	issuer, err := newCluster(c.Cluster)
	if err != nil {
		return nil, err
	}
	hidden, err := ttl.NewCache[string, struct{}](hiddenSize)
	if err != nil {
		return nil, err
	}
	return &Filter{
		issuer: issuer, keys: jwks.New(jwks.Config{Name: "cluster", Source: issuer, Metrics: c.Keys}),
		metrics: newMetrics(c.Metrics), hidden: hidden, unknown: rate.NewLimiter(unknownRate, unknownBurst),
	}, nil
}

// Run keeps the keys current until ctx ends.
func (f *Filter) Run(ctx context.Context) { f.keys.Run(ctx) }

// Close drops idle connections.
func (f *Filter) Close() { f.issuer.close() }

// Look refuses a token that names the cluster's issuer, wherever in its claims a
// reader could find it, and was not signed by it. What cannot be told is let
// through. Its errors are GP-AUTH-002, and GP-API-502 where there are too many
// that would need a review, or the signature got no turn.
func (f *Filter) Look(ctx context.Context, t token.Token, p authn.Purpose) (review.Finding, error) {
	// Read more leniently than the claims are: a broken token is none of the
	// cluster's, and would take a review otherwise.
	if name := f.issuer.name(); name == "" || !slices.Contains(t.Issuers(), name) {
		return review.Finding{}, nil
	}
	kid := jwks.KeyID(t)
	hidden := f.knownHidden(kid)
	switch err := f.verify(ctx, t, p, hidden); {
	case err == nil && overLongAgo(t):
		f.metrics.expired.Inc()
		return review.Finding{}, problem.New(problem.AuthBadToken, "the token has expired")
	case err == nil:
		f.metrics.genuine.Inc()
		return review.Finding{Genuine: true}, nil
	case errors.Is(err, jwks.ErrSignature):
		f.metrics.forged.Inc()
		return review.Finding{}, problem.New(problem.AuthBadToken, "the cluster did not sign the token").WithCause(err)
	case errors.Is(err, jwks.ErrNoKeys):
		f.metrics.noKeys.Inc()
		return review.Finding{}, nil
	case errors.Is(err, jwks.ErrUnknownKey):
		return f.unpublished(kid, hidden)
	default:
		return review.Finding{}, problem.New(problem.SourceFailed, "the token's signature could not be verified").WithCause(err)
	}
}

// unpublished decides on a token whose key the issuer does not publish. Made-up
// names of keys are the one forgery that no signature tells, so few are reviewed.
// It is no refusal: the next API server may know the key already.
func (f *Filter) unpublished(kid string, hidden bool) (review.Finding, error) {
	if hidden {
		f.metrics.hidden.Inc()
		return review.Finding{}, nil
	}
	if !f.unknown.Allow() {
		f.metrics.tooMany.Inc()
		return review.Finding{}, problem.New(problem.SourceFailed, "the token's key is not published, and too many such tokens are sent to have each reviewed")
	}
	f.metrics.unknownKey.Inc()
	return review.Finding{Accepted: func() { f.hidden.Put(kid, struct{}{}, time.Now().Add(hiddenTTL)) }}, nil
}

func (f *Filter) knownHidden(kid string) bool {
	_, ok := f.hidden.Get(kid, time.Now())
	return ok
}

func overLongAgo(t token.Token) bool {
	expiry := t.Unverified().Expiry
	return !expiry.IsZero() && time.Since(expiry) > longOver
}

// verify waits for news of the keys where that can tell anything: not for a key
// that is known not to be published, and not while nothing is.
func (f *Filter) verify(ctx context.Context, t token.Token, p authn.Purpose, hidden bool) error {
	wait := newsWait
	if hidden || !f.keys.Known() {
		wait = 0
	}
	_, err := f.keys.Verify(ctx, t, p, wait)
	return err
}
