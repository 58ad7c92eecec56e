package decision

import (
	"context"
	"fmt"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/internal/problem"
)

// authorize asks for the right that the operation needs, where it needs it.
func (d *Decider) authorize(ctx context.Context, out *Decision) error {
	switch {
	case out.Operation.Scope == api.ScopeSelf:
		return nil // an accepted token is all it takes
	case out.App != "":
		return d.authorizeApp(ctx, out)
	case out.Operation.Scope == api.ScopeFleet:
		return d.require(ctx, out, "")
	}
	return fmt.Errorf("%s: no app in an operation about one", out.Operation.ID)
}

// authorizeApp asks in the app's namespace. An app without one is asked about
// in the same way, so that only who could read the app learns that it is
// missing. A name with two namespaces needs the right in both before it is
// called ambiguous.
func (d *Decider) authorizeApp(ctx context.Context, out *Decision) error {
	r, err := d.namespaces.Resolve(out.App)
	if err != nil {
		return unresolved(err)
	}
	if err := d.require(ctx, out, r.Namespace.Name); err != nil {
		return err
	}
	if r.Ambiguous() {
		if err := d.require(ctx, out, r.Other.Name); err != nil {
			return err
		}
		return ambiguous(r)
	}
	if !r.Exists() {
		return problem.Newf(problem.NotFound, "no app or InfraService is named %s", out.App)
	}
	out.Namespace = r.Namespace
	return nil
}

// require returns GP-AUTHZ-001 unless the caller has the operation's right in
// the namespace, or in every one if namespace is empty.
func (d *Decider) require(ctx context.Context, out *Decision, namespace string) error {
	op := out.Operation
	allowed, err := d.access.Allowed(ctx, out.Caller, right(op, namespace), op.Purpose)
	if err != nil {
		return err
	}
	if !allowed {
		return denied(op, out.App)
	}
	return nil
}

// right is what an operation needs in a namespace.
func right(op *operation.Operation, namespace string) review.Right {
	return review.Right{
		Verb: op.Verb, Group: api.Group, Resource: op.Resource, Subresource: op.Subresource, Namespace: namespace,
	}
}

func unresolved(err error) *problem.Error {
	return problem.New(problem.SourceFailed, "the app's namespace could not be looked up").WithCause(err)
}

// denied says which right is missing. It names the app and not its namespace:
// which of the two an app has is known to those alone who may read it.
func denied(op *operation.Operation, app string) *problem.Error {
	resource := op.Resource
	if op.Subresource != "" {
		resource += "/" + op.Subresource
	}
	right := fmt.Sprintf("the verb %s on %s (API group %s)", op.Verb, resource, api.Group)
	if app == "" {
		return problem.Newf(problem.AuthzDenied, "not allowed to %s %s in every namespace", op.Verb, resource).
			WithHint("pass app= to ask about one app; without it " + right + " is needed cluster-wide")
	}
	return problem.Newf(problem.AuthzDenied, "not allowed to %s %s in the -cicd namespace of %s", op.Verb, resource, app).
		WithHint("needs " + right + " in that namespace; an operator can bind a role that has it")
}

func ambiguous(r namespaces.Resolution) *problem.Error {
	return problem.Newf(problem.Conflict, "both %s and %s exist", r.Namespace.Name, r.Other.Name).
		WithHint("an app and an InfraService share a name: an operator must remove one")
}
