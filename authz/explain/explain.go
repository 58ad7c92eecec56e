// Package explain owns how one decision is shown to an operator: it has the
// call decided by the same code that decides for the edge, against the real
// cluster, and writes down everything that was asked and answered on the way.
// It owns no decision of its own.
package explain

import (
	"context"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/jwks"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/oidc"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/internal/problem"
)

// Config says which gateway's decision is explained: its settings must be those
// of the gateway's authz.
type Config struct {
	// Cluster is the API server, and who asks it: that one needs to create
	// TokenReviews and SubjectAccessReviews, and to list and watch namespaces.
	Cluster *rest.Config
	// Audiences and Delegates are authz's settings of those names.
	Audiences, Delegates []string
	// People are authz's settings of how people sign in.
	People oidc.Settings
	// DenyListFile is authz's setting of that name. Empty means that it has none.
	DenyListFile string
}

// Question is one call.
type Question struct {
	// Method and Target are the call's, as in its request line.
	Method, Target string
	// Credential is what the call would carry.
	Credential Credential
	// OnBehalfOf is the person that the call names, if any.
	OnBehalfOf string
}

// Explain decides the question and says how. The error says that it could not
// be asked at all; whatever the gateway would answer is in the report.
func Explain(ctx context.Context, c Config, q Question) (*Report, error) {
	operations, err := operation.NewTable(api.Operations())
	if err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}
	report := &Report{Call: Call{Method: q.Method, Target: q.Target}, Token: q.Credential.token()}
	op, err := operations.Match(q.Method, q.Target)
	if err != nil {
		report.refused(problem.From(err))
		return report, nil
	}
	report.Call.describe(op)
	denied, err := readDenyList(c.DenyListFile)
	if err != nil {
		return nil, err
	}
	client, err := review.NewClient(c.Cluster)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	asked := &witness{API: client}
	parts, err := newParts(ctx, asked, c, q.Credential)
	if err != nil {
		return nil, err
	}
	defer parts.close()
	started, err := namespaces.Start(ctx, c.Cluster)
	if err != nil {
		return nil, err
	}
	defer started.Close()
	index := &index{Started: started}
	if report.Token != nil && report.Token.Issuer != "" && report.Token.Issuer == c.People.Issuer {
		report.Token.VerifiedBy = "the keys of its issuer"
	}
	d := decision.New(decision.Config{
		Authenticator: parts.authenticator, Access: parts.access, Namespaces: index, Delegates: c.Delegates, DenyList: denied,
	}).Decide(ctx, decision.Request{Operation: op, Method: q.Method, Target: q.Target, Headers: q.headers()})
	report.fill(&d, asked, index.found)
	report.DenyList = denied.found
	if report.Token != nil && report.Token.Issuer != "" && c.People.Issuer == "" && report.Answer.Rule == problem.AuthBadToken.ID {
		report.Token.Note = noIssuer
	}
	return report, nil
}

// parts are what the decision asks, as authz puts them together, but for what
// spares the cluster a review of a forged token: the review refuses it too.
type parts struct {
	authenticator authn.Authenticator
	tokens        *review.Tokens
	access        *review.Access
	stop          context.CancelFunc
	ended         chan struct{}
}

func newParts(ctx context.Context, asked review.API, c Config, credential Credential) (*parts, error) {
	slots, err := review.NewSlots(review.DefaultLimits())
	if err != nil {
		return nil, err
	}
	reg := prometheus.NewRegistry()
	metrics := review.NewMetrics(reg, slots)
	people, err := oidc.NewPeople(c.People, reg, jwks.NewMetrics(reg))
	if err != nil {
		return nil, err
	}
	tokens, err := review.NewTokens(asked, slots, metrics, c.Audiences)
	if err != nil {
		return nil, err
	}
	access, err := review.NewAccess(asked, slots, metrics)
	if err != nil {
		tokens.Close()
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	p := &parts{
		authenticator: authn.ByIssuer{Issuers: people.Issuers, Default: tokens},
		tokens:        tokens, access: access, stop: stop, ended: make(chan struct{}),
	}
	go func() {
		defer close(p.ended)
		people.Run(ctx)
	}()
	if credential.As != nil {
		p.authenticator = assumed{credential.As}
	}
	return p, nil
}

func (p *parts) close() {
	p.stop()
	<-p.ended
	p.tokens.Close()
	p.access.Close()
}

// index is the namespaces of the cluster, with what the decision found there.
type index struct {
	*namespaces.Started
	found []namespaces.Resolution
}

// Resolve finds an app's namespace and remembers what was found. One decision
// asks one question after another.
func (i *index) Resolve(app string) (namespaces.Resolution, error) {
	r, err := i.Started.Resolve(app)
	if err == nil {
		i.found = append(i.found, r)
	}
	return r, err
}
