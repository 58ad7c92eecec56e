// Package operation owns what authz knows of an operation before a call comes:
// the contract's table, checked once and compiled. It reads the names in a
// call's path and query with the contract's own patterns, however Envoy matched
// the route.
package operation

import (
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
)

// Unmatched is what a route that serves no operation calls itself.
const Unmatched = "_unmatched"

// appParam names the path or query parameter that names an app.
const appParam = "app"

// Table finds operations by name. It does not change.
type Table struct {
	byID    map[string]*Operation
	ordered []*Operation
}

// Operation is one operation of the contract, ready to be asked about.
type Operation struct {
	api.Operation
	// Purpose is ForWrite for T1 and T2.
	Purpose authn.Purpose

	segments []segment
	app      *param // the query parameter app, where there is one
	follows  bool   // it has the query parameter that keeps the answer open
}

// segment is one segment of a path template: a fixed text or a parameter.
type segment struct {
	text  string
	param *param
}

type param struct {
	name, pattern string
	maxLength     int
	re            *regexp.Regexp
}

// NewTable compiles the contract's operations. An operation that lacks
// something which a decision needs is an error: it must not be served at all.
func NewTable(operations []api.Operation) (*Table, error) {
	t := &Table{byID: make(map[string]*Operation, len(operations))}
	var faults []error
	for _, op := range operations {
		compiled, err := compile(op)
		if _, twice := t.byID[op.ID]; twice {
			err = errors.Join(err, errors.New("described twice"))
		}
		if err != nil {
			faults = append(faults, fmt.Errorf("operation %q: %w", op.ID, err))
			continue
		}
		t.byID[op.ID] = compiled
		t.ordered = append(t.ordered, compiled)
	}
	if err := errors.Join(faults...); err != nil {
		return nil, err
	}
	return t, nil
}

// Lookup finds an operation by its operationId.
func (t *Table) Lookup(id string) (*Operation, bool) {
	op, ok := t.byID[id]
	return op, ok
}

// All gives every operation, in the order of the contract. The slice is shared:
// read it only.
func (t *Table) All() []*Operation { return t.ordered }

func compile(op api.Operation) (*Operation, error) {
	if err := complete(op); err != nil {
		return nil, err
	}
	o := &Operation{Operation: op, Purpose: authn.ForWrite}
	if op.Tier == api.TierRead {
		o.Purpose = authn.ForRead
	}
	for text := range strings.SplitSeq(strings.TrimPrefix(op.Path, "/"), "/") {
		s := segment{text: text}
		if name, ok := variable(text); ok {
			p, err := compileParam(op.PathParams, name)
			if err != nil {
				return nil, err
			}
			s.param = p
		}
		o.segments = append(o.segments, s)
	}
	o.follows = takes(op.QueryParams, followParam)
	switch op.Scope {
	case api.ScopeSelf:
		// One that is about an app gives it no namespace: the token is all it takes.
		if !takes(op.QueryParams, appParam) {
			break
		}
		p, err := compileParam(op.QueryParams, appParam)
		if err != nil {
			return nil, err
		}
		o.app = p
	case api.ScopeApp:
		if !o.has(appParam) {
			return nil, errors.New("no app in its path")
		}
	case api.ScopeFleet:
		p, err := compileParam(op.QueryParams, appParam)
		if err != nil {
			return nil, err
		}
		o.app = p
	}
	return o, nil
}

// complete says what a decision about op would lack.
func complete(op api.Operation) error {
	self := op.Scope == api.ScopeSelf
	switch {
	case op.ID == "" || op.ID == Unmatched || op.Method == "" || op.Backend == "":
		return errors.New("no name, method or backend")
	case !strings.HasPrefix(op.Path, "/"):
		return errors.New("no path")
	case op.Tier != api.TierRead && op.Tier != api.TierAct && op.Tier != api.TierPropose:
		return fmt.Errorf("unknown tier %q", op.Tier)
	case op.Write && op.Tier == api.TierRead:
		return errors.New("a write of the reads' tier")
	case !self && op.Scope != api.ScopeApp && op.Scope != api.ScopeFleet:
		return fmt.Errorf("unknown scope %q", op.Scope)
	case !self && (op.Verb == "" || op.Resource == ""):
		return errors.New("no verb or resource to ask about")
	case self && (op.Verb != "" || op.Resource != "" || op.Tier != api.TierRead):
		return errors.New("needs a right but names nothing to hold it on")
	}
	return nil
}

func compileParam(params []api.Param, name string) (*param, error) {
	for _, p := range params {
		if p.Name != name {
			continue
		}
		if p.MaxLength <= 0 || !strings.HasPrefix(p.Pattern, "^") || !strings.HasSuffix(p.Pattern, "$") {
			return nil, fmt.Errorf("parameter %q: no length or no anchored pattern", name)
		}
		re, err := regexp.Compile(p.Pattern)
		if err != nil {
			return nil, fmt.Errorf("parameter %q: %w", name, err)
		}
		return &param{name: name, pattern: p.Pattern, maxLength: p.MaxLength, re: re}, nil
	}
	return nil, fmt.Errorf("parameter %q: not described", name)
}

func takes(params []api.Param, name string) bool {
	return slices.ContainsFunc(params, func(p api.Param) bool { return p.Name == name })
}

func variable(segment string) (name string, ok bool) {
	name, ok = strings.CutPrefix(segment, "{")
	if !ok {
		return "", false
	}
	return strings.CutSuffix(name, "}")
}

func (o *Operation) has(param string) bool {
	for _, s := range o.segments {
		if s.param != nil && s.param.name == param {
			return true
		}
	}
	return false
}
