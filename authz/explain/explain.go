// Package explain owns how one decision is shown to an operator: it has the
// call decided by the same code that decides for the edge, against the real
// cluster, and writes down everything that was asked and answered on the way.
// It owns no decision of its own.
package explain

import (
	"context"
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/namespaces"
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
	client, err := review.NewClient(c.Cluster)
	if err != nil {
		return nil, err
	}
	defer client.Close()
	asked := &witness{API: client}
	parts, err := newParts(asked, c, q.Credential)
	if err != nil {
		return nil, err
	}
	defer parts.close()
	index, err := known(ctx, c.Cluster)
	if err != nil {
		return nil, err
	}
	defer index.close()
	d := decision.New(decision.Config{
		Authenticator: parts.authenticator, Access: parts.access, Namespaces: index, Delegates: c.Delegates,
	}).Decide(ctx, decision.Request{Operation: op, Method: q.Method, Target: q.Target, Headers: q.headers()})
	report.fill(&d, asked, index.found)
	return report, nil
}

// parts are what the decision asks, as authz puts them together.
type parts struct {
	authenticator authn.Authenticator
	tokens        *review.Tokens
	access        *review.Access
}

func newParts(asked review.API, c Config, credential Credential) (*parts, error) {
	slots, err := review.NewSlots(review.DefaultLimits())
	if err != nil {
		return nil, err
	}
	metrics := review.NewMetrics(prometheus.NewRegistry(), slots)
	tokens, err := review.NewTokens(asked, slots, metrics, c.Audiences)
	if err != nil {
		return nil, err
	}
	access, err := review.NewAccess(asked, slots, metrics)
	if err != nil {
		tokens.Close()
		return nil, err
	}
	p := &parts{authenticator: authn.ByIssuer{Default: tokens}, tokens: tokens, access: access}
	if credential.As != nil {
		p.authenticator = assumed{credential.As}
	}
	return p, nil
}

func (p *parts) close() {
	p.tokens.Close()
	p.access.Close()
}

// index is the namespaces of the cluster, with what the decision found there.
type index struct {
	*namespaces.Index
	stop  context.CancelFunc
	ended chan struct{}
	found []namespaces.Resolution
}

// known reads the cluster's namespaces. One list is asked for first, since it
// says why it cannot be had: a watch tries again for ever.
func known(ctx context.Context, cluster *rest.Config) (*index, error) {
	client, err := metadata.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("reading namespaces: %w", err)
	}
	resource := schema.GroupVersionResource{Version: "v1", Resource: "namespaces"}
	if _, err := client.Resource(resource).List(ctx, metav1.ListOptions{Limit: 1}); err != nil {
		return nil, fmt.Errorf("reading namespaces: %w", err)
	}
	x, err := namespaces.NewIndex(client)
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(ctx)
	i := &index{Index: x, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(i.ended)
		x.Run(ctx)
	}()
	select {
	case <-x.Synced():
		return i, nil
	case <-ctx.Done():
		i.close()
		return nil, fmt.Errorf("reading namespaces: %w", errors.Join(ctx.Err(), context.Cause(ctx)))
	}
}

// Resolve finds an app's namespace and remembers what was found. One decision
// asks one question after another.
func (i *index) Resolve(app string) (namespaces.Resolution, error) {
	r, err := i.Index.Resolve(app)
	if err == nil {
		i.found = append(i.found, r)
	}
	return r, err
}

func (i *index) close() {
	i.stop()
	<-i.ended
}
