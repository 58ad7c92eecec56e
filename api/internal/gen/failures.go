package main

import (
	"errors"
	"fmt"
	"regexp"

	"sigs.k8s.io/yaml"
)

// failuresFile lists the known failures, in the package's directory. They are
// apart from the operations: who writes them reads logs, and no code.
const failuresFile = "known-failures.yaml"

type knownFailure struct {
	ID       string   `json:"id"`
	Patterns []string `json:"patterns"`
	Hint     string   `json:"hint"`
	Field    string   `json:"field,omitempty"`
}

// readFailures parses the known failures. A fault of one would keep the process
// that compiles them from starting, so each is found here first; all are
// reported together.
func readFailures(source []byte) ([]knownFailure, error) {
	var failures []knownFailure
	if err := yaml.UnmarshalStrict(source, &failures); err != nil {
		return nil, fmt.Errorf("parse: %w", err)
	}
	var faults []error
	seen := map[string]bool{}
	for i, f := range failures {
		if f.ID == "" || f.Hint == "" || len(f.Patterns) == 0 {
			faults = append(faults, fmt.Errorf("failure %d, %q: it needs an id, a hint and a pattern", i+1, f.ID))
		}
		if seen[f.ID] {
			faults = append(faults, fmt.Errorf("%s: it is there twice", f.ID))
		}
		seen[f.ID] = true
		for _, p := range f.Patterns {
			if _, err := regexp.Compile(p); err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", f.ID, err))
			}
		}
	}
	return failures, errors.Join(faults...)
}
