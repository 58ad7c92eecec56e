package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// contractVersionKey is where openapi.yaml gives the version of the contract's
// own shape, which changes more rarely than the API's.
const contractVersionKey = "x-glidepath-contract-version"

// spec is what the generated files need of openapi.yaml.
type spec struct {
	Version         string
	ContractVersion int
	Operations      []operation
}

type operation struct {
	ID, Method, Path string
	Policy           policy
	Params           []param
}

type param struct {
	Name, In, Pattern string
	MaxLength         uint64
	Required          bool
}

// readSpec parses and validates source. All faults of its operations are
// reported together.
func readSpec(source []byte) (*spec, error) {
	loader := openapi3.NewLoader()
	// Positions in the file give the operations their order: paths are a map.
	loader.IncludeOrigin = true
	doc, err := loader.LoadFromData(source)
	if err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("validate: %w", err)
	}
	version, ok := doc.Info.Extensions[contractVersionKey].(float64)
	if !ok {
		return nil, fmt.Errorf("info.%s is no number", contractVersionKey)
	}
	operations, err := readOperations(doc)
	if err != nil {
		return nil, err
	}
	return &spec{Version: doc.Info.Version, ContractVersion: int(version), Operations: operations}, nil
}

func readOperations(doc *openapi3.T) ([]operation, error) {
	type placed struct {
		operation
		line int
	}
	var (
		found []placed
		errs  []error
	)
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			policy, err := readPolicy(op)
			if err != nil {
				errs = append(errs, fmt.Errorf("%s %s: %w", method, path, err))
				continue
			}
			found = append(found, placed{
				operation: operation{
					ID: op.OperationID, Method: method, Path: path, Policy: policy,
					Params: readParams(item.Parameters, op.Parameters),
				},
				line: op.Origin.Key.Line,
			})
		}
	}
	if len(errs) > 0 {
		slices.SortFunc(errs, func(a, b error) int { return cmp.Compare(a.Error(), b.Error()) })
		return nil, errors.Join(errs...)
	}
	slices.SortFunc(found, func(a, b placed) int { return cmp.Compare(a.line, b.line) })
	operations := make([]operation, len(found))
	for i, p := range found {
		operations[i] = p.operation
	}
	return operations, nil
}

// readParams returns a path's parameters and then its operation's, both in the
// order of the file.
func readParams(lists ...openapi3.Parameters) []param {
	var params []param
	for _, ref := range slices.Concat(lists...) {
		p := param{Name: ref.Value.Name, In: ref.Value.In, Required: ref.Value.Required}
		if s := ref.Value.Schema; s != nil && s.Value.Type.Is(openapi3.TypeString) {
			p.Pattern = s.Value.Pattern
			if s.Value.MaxLength != nil {
				p.MaxLength = *s.Value.MaxLength
			}
		}
		params = append(params, p)
	}
	return params
}
