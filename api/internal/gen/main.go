// Command gen writes what package api derives from openapi.yaml: the operation
// table and the contract. It runs in the directory of the package, as
// `go generate ./api` does.
package main

import (
	"fmt"
	"maps"
	"os"
	"slices"
)

// specFile is what everything is generated from, in the package's directory.
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
	files, err := generate(source)
	if err != nil {
		return fmt.Errorf("%s: %w", specFile, err)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		//nolint:gosec // source files are for everyone to read
		if err := os.WriteFile(name, files[name], 0o644); err != nil {
			return fmt.Errorf("write a generated file: %w", err)
		}
	}
	return nil
}

// generate returns the generated files by name. The same source gives the same
// bytes.
func generate(source []byte) (map[string][]byte, error) {
	spec, err := readSpec(source)
	if err != nil {
		return nil, err
	}
	table, err := renderTable(spec)
	if err != nil {
		return nil, err
	}
	contract, err := renderContract(spec)
	if err != nil {
		return nil, err
	}
	return map[string][]byte{
		"operations.gen.go":       table,
		"glidepath-contract.json": contract,
	}, nil
}
