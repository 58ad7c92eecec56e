package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

const policyKey = "x-glidepath"

// policy is an operation's x-glidepath block. The pointers tell a switch that
// was left out from one that was set to false: each has to be written down.
type policy struct {
	Tier        string `json:"tier"`
	Backend     string `json:"backend"`
	Scope       string `json:"scope"`
	Verb        string `json:"verb"`
	Resource    string `json:"resource"`
	Subresource string `json:"subresource"`
	Stream      *bool  `json:"stream"`
	Write       *bool  `json:"write"`
	Cached      *bool  `json:"cached"`
	Planned     *bool  `json:"planned"`
}

// readPolicy decodes and checks op's policy. An operation without a complete
// one must not reach the table, where its zero values would look like a choice.
func readPolicy(op *openapi3.Operation) (policy, error) {
	var p policy
	raw, ok := op.Extensions[policyKey]
	if !ok {
		return p, errors.New("no " + policyKey + " block")
	}
	encoded, err := json.Marshal(raw)
	if err != nil {
		return p, fmt.Errorf("encode %s: %w", policyKey, err)
	}
	decoder := json.NewDecoder(bytes.NewReader(encoded))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&p); err != nil {
		return p, fmt.Errorf("decode %s: %w", policyKey, err)
	}
	return p, p.validate(op)
}

func (p policy) validate(op *openapi3.Operation) error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(policyKey+": "+format, args...))
		}
	}
	check(op.OperationID != "", "the operation has no operationId")
	check(slices.Contains([]string{"T0", "T1", "T2"}, p.Tier), "unknown tier %q", p.Tier)
	check(slices.Contains([]string{"self", "app", "fleet"}, p.Scope), "unknown scope %q", p.Scope)
	check(slices.Equal(op.Tags, []string{p.Backend}), "backend %q is not the operation's one tag %q", p.Backend, op.Tags)
	if p.Scope == "self" {
		check(p.Verb+p.Resource+p.Subresource == "", "scope self asks no review, so it has no verb and resource")
	} else {
		check(p.Verb != "" && p.Resource != "", "scope %s needs a verb and a resource", p.Scope)
	}
	for name, value := range map[string]*bool{
		"stream": p.Stream, "write": p.Write, "cached": p.Cached, "planned": p.Planned,
	} {
		check(value != nil, "%s is not given", name)
	}
	check(p.Write == nil || *p.Write == (p.Tier != "T0"), "tier %s does not fit write", p.Tier)
	return errors.Join(errs...)
}
