// Package decision owns the order in which a call is judged and the answer it
// gets: who calls, for whom, about which app, and whether that is allowed. It
// knows nothing of Envoy.
package decision

import (
	"context"
	"errors"
	"time"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/problem"
)

// Timeout bounds one decision. Envoy waits a little longer, so that a slow API
// server is answered with GP-API-502 and not by Envoy.
const Timeout = 2 * time.Second

// Namespaces finds an app's namespace; namespaces.Index is one.
type Namespaces interface {
	Resolve(app string) (namespaces.Resolution, error)
}

// Access says what a caller may do; review.Access is one.
type Access interface {
	Allowed(context.Context, *authn.Caller, review.Right, authn.Purpose) (bool, error)
}

// DenyList says who may do nothing for now; denylist.File is one. Its error is
// GP-AUTH-006.
type DenyList interface {
	Check(c *authn.Caller, onBehalfOf string) error
}

// Config is what a Decider needs. All fields but Delegates and DenyList are
// required.
type Config struct {
	Authenticator authn.Authenticator
	Access        Access
	Namespaces    Namespaces
	// Delegates are the user names that may name the person they act for.
	Delegates []string
	// DenyList is asked at each decision; nil denies nobody.
	DenyList DenyList
}

// Decider decides calls. It is safe for concurrent use.
type Decider struct {
	authn      authn.Authenticator
	access     Access
	namespaces Namespaces
	delegates  map[string]bool
	batch      *lane
	denied     DenyList
}

// New gives a Decider.
func New(c Config) *Decider {
	d := &Decider{
		authn: c.Authenticator, access: c.Access, namespaces: c.Namespaces, delegates: map[string]bool{},
		batch: newLane(), denied: c.DenyList,
	}
	for _, name := range c.Delegates {
		d.delegates[name] = true
	}
	return d
}

// Request is a call as it came to the edge.
type Request struct {
	// Operation is the one that the matched route names.
	Operation *operation.Operation
	// Method and Target are the request's, as the backend will receive them.
	Method, Target string
	Headers        token.Headers
}

// Decision is the verdict on a call, with what became known on the way to it:
// after a refusal, fields may be empty. The zero value refuses.
type Decision struct {
	// Refusal says why the call is refused. It is nil when it is allowed.
	Refusal *problem.Error

	Operation *operation.Operation
	Caller    *authn.Caller
	// Delegate says that the caller may name the person it acts for.
	Delegate bool
	// OnBehalfOf is the person that a delegate named.
	OnBehalfOf string
	// App is the app that the call names, Namespace what it leads to. A call
	// about no single app has neither.
	App       string
	Namespace namespaces.Namespace

	granted bool
}

// Allowed says whether the call may go on to its backend.
func (d *Decision) Allowed() bool { return d.granted && d.Refusal == nil }

// Decide judges a call. It takes at most Timeout.
func (d *Decider) Decide(ctx context.Context, r Request) Decision {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	out := Decision{Operation: r.Operation}
	if err := d.decide(ctx, r, &out); err != nil {
		out.Refusal = problem.From(err)
		return out
	}
	out.granted = true
	return out
}

// decide is the order of the answers: the caller, the person, whether either is
// denied by list, the names, the right, and only for those who hold it whether there is such an app.
func (d *Decider) decide(ctx context.Context, r Request, out *Decision) error {
	target, err := r.Operation.Parse(r.Method, r.Target)
	if err != nil {
		return err
	}
	out.App = target.App
	tok, err := token.FromHeaders(r.Headers)
	if err != nil {
		return err
	}
	out.Caller, err = d.authn.Authenticate(ctx, tok, r.Operation.Purpose)
	if err != nil {
		return err
	}
	if out.Caller == nil {
		return errors.New("a token was accepted that is nobody's")
	}
	// A person is never a delegate, whoever lists one.
	out.Delegate = d.delegates[out.Caller.Username] && out.Caller.Kind != authn.Person
	out.OnBehalfOf, err = person(r, out.Delegate)
	if err != nil {
		return err
	}
	if d.denied != nil {
		if err := d.denied.Check(out.Caller, out.OnBehalfOf); err != nil {
			return err
		}
	}
	if target.Malformed != nil {
		return target.Malformed
	}
	return d.authorize(ctx, out)
}
