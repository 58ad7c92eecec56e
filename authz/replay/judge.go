package replay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"golang.org/x/sync/errgroup"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/problem"
)

// Config says against what calls are decided again.
type Config struct {
	Access     decision.Access
	Namespaces decision.Namespaces
	Groups     Groups
	// Concurrency is how many kinds of calls are decided at once.
	Concurrency int
}

// why a kind of call is not decided again. Of the first ones no right decides.
const (
	whyNoOperation = "the edge refused it: it was a call of no operation"
	whyNoRight     = "refused before any right was asked about, which no role changes"
	whyNoDecision  = "nobody decided it then: a part of the gateway or the API server was away"
	whyGone        = "the contract has no such operation"
	whyNoCaller    = "the line names no caller"
	whyNoAnswer    = "the API server gave no answer now"
	whyBeyond      = "too many kinds of calls to count each"
)

// Judge decides every kind of call again. The error says that it ended early.
func Judge(ctx context.Context, c Config, t *Tally) (*Report, error) {
	operations, err := operation.NewTable(api.Operations())
	if err != nil {
		return nil, fmt.Errorf("reading the contract: %w", err)
	}
	report := newReport(t)
	var mu sync.Mutex
	var group errgroup.Group
	group.SetLimit(c.Concurrency)
	for k, n := range t.kinds {
		group.Go(func() error {
			if err := ctx.Err(); err != nil {
				return err
			}
			now, why := c.decide(ctx, operations, k)
			mu.Lock()
			defer mu.Unlock()
			report.add(k, n, now, why)
			return nil
		})
	}
	// What was cut short by the end of ctx has no answer, and is no report.
	if err := errors.Join(group.Wait(), ctx.Err()); err != nil {
		return nil, fmt.Errorf("deciding past calls again: %w", err)
	}
	report.finish()
	return report, nil
}

// decide decides one kind of call again, or says why it cannot.
func (c Config) decide(ctx context.Context, operations *operation.Table, k kind) (now Verdict, why string) {
	op, why := decidable(operations, k)
	if why != "" {
		return now, why
	}
	caller, why := c.Groups.caller(k.caller)
	if why != "" {
		return now, why
	}
	target, err := op.Target(k.app, nil)
	if err != nil {
		return now, err.Error()
	}
	d := decision.New(decision.Config{
		Authenticator: known{caller}, Access: c.Access, Namespaces: c.Namespaces, Delegates: k.delegates(),
	}).Decide(ctx, decision.Request{Operation: op, Method: op.Method, Target: target, Headers: k})
	switch {
	case d.Allowed():
		return Verdict{Allowed: true}, ""
	case d.Refusal == nil || d.Refusal.Rule.ID == problem.SourceFailed.ID:
		return now, whyNoAnswer
	}
	return Verdict{Rule: d.Refusal.Rule.ID}, ""
}

// decidable gives the operation of calls that a right decided, and for all
// others why none did.
func decidable(operations *operation.Table, k kind) (op *operation.Operation, why string) {
	op, ok := operations.Lookup(k.op)
	switch {
	case strings.HasPrefix(k.op, "_"):
		return nil, whyNoOperation
	case !ok:
		return nil, whyGone
	case !k.allowed && (k.rule == "" || k.rule == problem.SourceFailed.ID || strings.HasPrefix(k.rule, "GP-EDGE-")):
		return nil, whyNoDecision
	case !k.allowed && !afterRights(k.rule):
		return nil, whyNoRight
	case k.caller == "":
		return nil, whyNoCaller
	}
	return op, ""
}

// afterRights says whether a refusal of this rule comes from asking about a
// right, or after it: what there is to find is told only to who may look.
func afterRights(rule string) bool {
	return rule == problem.AuthzDenied.ID || rule == problem.NotFound.ID || rule == problem.Conflict.ID
}

// delegates makes the caller of a call that named a person one who may: then it
// was, and the setting is not what is replayed.
func (k kind) delegates() []string {
	if !k.delegated {
		return nil
	}
	return []string{k.caller}
}

// Get gives the headers that such a call has: a token that nobody looks at, and
// a person where there was one.
func (k kind) Get(name string) (value string, times int) {
	switch {
	case name == token.DirectHeader:
		return "Bearer replayed", 1
	case name == decision.OnBehalfOfHeader && k.delegated:
		return "someone", 1
	}
	return "", 0
}

// known authenticates every token as one caller.
type known struct{ caller *authn.Caller }

// Authenticate gives the caller.
func (k known) Authenticate(context.Context, token.Token, authn.Purpose) (*authn.Caller, error) {
	return k.caller, nil
}
