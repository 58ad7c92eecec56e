// Command gen writes what package api derives from openapi.yaml and from
// known-failures.yaml: the operation table and the contract. It runs in the directory of the package, as
// `go generate ./api` does.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
)

// specFile is what operations are generated from, in the package's directory.
const specFile = "openapi.yaml"

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run() error {
	source, err := os.ReadFile(specFile)
	if err != nil {
		return fmt.Errorf("read the contract's source: %w", err)
	}
	failures, err := os.ReadFile(failuresFile)
	if err != nil {
		return fmt.Errorf("read the known failures: %w", err)
	}
	files, err := generate(source, failures)
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		//nolint:gosec // source files are for everyone to read
		if err := os.WriteFile(name, files[name], 0o644); err != nil {
			return fmt.Errorf("write a generated file: %w", err)
		}
	}
	return nil
}

// generate returns the generated files by name. The same sources give the same
// bytes.
func generate(source, failures []byte) (map[string][]byte, error) {
	spec, err := readSpec(source)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", specFile, err)
	}
	known, err := readFailures(failures)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", failuresFile, err)
	}
	table, err := renderTable(spec)
	if err != nil {
		return nil, err
	}
	contract, err := renderContract(spec, known)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"operations.gen.go":       table,
		"glidepath-contract.json": contract,
	}, nil
}
