package main

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// contract is the document that getContract serves.
type contract struct {
	APIVersion      string              `json:"apiVersion"`
	ContractVersion int                 `json:"contractVersion"`
	Operations      []contractOperation `json:"operations"`
	// KnownFailures is a list even while it is empty: clients range over it.
	KnownFailures []knownFailure `json:"knownFailures"`
}

type contractOperation struct {
	Op     string `json:"op"`
	Method string `json:"method"`
	Path   string `json:"path"`
	Tier   string `json:"tier"`
	Verb   string `json:"verb,omitempty"`
	// Resource is spelled as in an RBAC rule: with its subresource, "runs/logs".
	Resource string `json:"resource,omitempty"`
	Scope    string `json:"scope"`
	Stream   bool   `json:"stream"`
	Write    bool   `json:"write"`
}

// renderContract renders the contract as indented JSON with a final newline,
// so that a change of it can be reviewed line by line.
func renderContract(s *spec, failures []knownFailure) ([]byte, error) {
	c := contract{
		APIVersion:      s.Version,
		ContractVersion: s.ContractVersion,
		Operations:      make([]contractOperation, 0, len(s.Operations)),
		KnownFailures:   append([]knownFailure{}, failures...),
	}
	for _, op := range s.Operations {
		resource := op.Policy.Resource
		if op.Policy.Subresource != "" {
			resource += "/" + op.Policy.Subresource
		}
		c.Operations = append(c.Operations, contractOperation{
			Op: op.ID, Method: op.Method, Path: op.Path, Tier: op.Policy.Tier,
			Verb: op.Policy.Verb, Resource: resource, Scope: op.Policy.Scope,
			Stream: *op.Policy.Stream, Write: *op.Policy.Write,
		})
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(c); err != nil {
		return nil, fmt.Errorf("encode the contract: %w", err)
	}
	return buf.Bytes(), nil
}
