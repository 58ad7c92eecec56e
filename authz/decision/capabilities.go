package decision

import (
	"context"
	"errors"
	"fmt"

	"golang.org/x/sync/errgroup"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/internal/problem"
)

// Standing is an accepted call as far as it is the caller's: who calls, and for
// whom.
type Standing struct {
	Caller *authn.Caller
	// Delegate and OnBehalfOf are those of Decision.
	Delegate   bool
	OnBehalfOf string
}

// Capable is what a caller may call about one app.
type Capable struct {
	// Namespace is the app's, for a caller who may call anything about it;
	// empty otherwise, and where the app has none or two.
	Namespace string
	// Operations are all of them, in the order of the contract.
	Operations []Capability
}

// Capability is what would come of calling one operation.
type Capability struct {
	Operation *operation.Operation
	// Refusal is nil when the call would be allowed.
	Refusal *problem.Error
}

// Capabilities answers for every operation at once. It is safe for concurrent
// use.
type Capabilities struct {
	decider    *Decider
	operations *operation.Table
}

// Capabilities gives the capabilities of those whom d decides about.
func (d *Decider) Capabilities(operations *operation.Table) *Capabilities {
	return &Capabilities{decider: d, operations: operations}
}

// Of says what the caller may call about the app. Each operation is judged by
// the code that judges calls, out of answers that are asked for beforehand: one
// for each right, all as for reads and by one deadline, Timeout. An error is
// GP-API-502, and then nothing is known.
func (c *Capabilities) Of(ctx context.Context, s Standing, app string) (Capable, error) {
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	found, err := c.decider.namespaces.Resolve(app)
	if err != nil {
		return Capable{}, unresolved(err)
	}
	known, err := c.decider.answers(ctx, s.Caller, c.rights(found))
	if err != nil {
		return Capable{}, problem.From(err)
	}
	judge := &Decider{access: known, namespaces: fixed{app, found}}
	var out Capable
	for _, op := range c.operations.All() {
		d := Decision{Operation: op, Caller: s.Caller, Delegate: s.Delegate, OnBehalfOf: s.OnBehalfOf, App: app}
		one := Capability{Operation: op}
		if err := judge.judge(ctx, &d); err != nil {
			one.Refusal = problem.From(err)
		} else if d.Namespace.Name != "" {
			out.Namespace = d.Namespace.Name
		}
		out.Operations = append(out.Operations, one)
	}
	return out, nil
}

// judge decides about an operation for a caller who is known already.
func (d *Decider) judge(ctx context.Context, out *Decision) error {
	if out.OnBehalfOf == "" {
		if err := unnamed(out.Operation, out.Delegate); err != nil {
			return err
		}
	}
	return d.authorize(ctx, out)
}

// rights are those that the operations need where the app is, each once.
func (c *Capabilities) rights(found namespaces.Resolution) []review.Right {
	var out []review.Right
	seen := map[review.Right]bool{}
	add := func(r review.Right) {
		if !seen[r] {
			seen[r] = true
			out = append(out, r)
		}
	}
	for _, op := range c.operations.All() {
		if op.Scope == api.ScopeSelf {
			continue
		}
		add(right(op, found.Namespace.Name))
		if found.Ambiguous() {
			add(right(op, found.Other.Name))
		}
	}
	return out
}

// answered are rights whose reviews have been made.
type answered map[review.Right]bool

// Allowed gives the answer to a review. What was not asked is an error.
func (a answered) Allowed(_ context.Context, _ *authn.Caller, r review.Right, _ authn.Purpose) (bool, error) {
	allowed, ok := a[r]
	if !ok {
		return false, errors.New("a right that was not asked about")
	}
	return allowed, nil
}

// answers makes one review a right.
func (d *Decider) answers(ctx context.Context, c *authn.Caller, rights []review.Right) (answered, error) {
	allowed := make([]bool, len(rights))
	group, ctx := errgroup.WithContext(ctx)
	for i, r := range rights {
		leave, err := d.batch.enter(ctx, c.Username)
		if err != nil {
			if failed := group.Wait(); failed != nil {
				return nil, failed
			}
			return nil, fmt.Errorf("waiting to ask what a caller may do: %w", err)
		}
		group.Go(func() (err error) {
			defer leave()
			allowed[i], err = d.access.Allowed(ctx, c, r, authn.ForRead)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	out := make(answered, len(rights))
	for i, r := range rights {
		out[r] = allowed[i]
	}
	return out, nil
}

// fixed is what one app's name led to, so that all operations are judged by the
// same.
type fixed struct {
	app   string
	found namespaces.Resolution
}

// Resolve gives it.
func (f fixed) Resolve(app string) (namespaces.Resolution, error) {
	if app != f.app {
		return namespaces.Resolution{}, errors.New("an app that was not asked about")
	}
	return f.found, nil
}
