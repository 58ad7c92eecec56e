package arch

import (
	"fmt"
	"slices"
	"strings"
)

// confinement keeps a library in the folders that own its subject.
type confinement struct {
	// library is an import path; what is below it is meant too.
	library string
	// dirs may import it, with what is below them.
	dirs []string
	why  string
}

// confinements hold for test files too; test/ itself may import what it needs to
// stand in for a part.
var confinements = []confinement{
	{
		library: "github.com/envoyproxy/go-control-plane/pkg",
		dirs:    []string{"xds"},
		why:     "xds alone serves configuration",
	},
	{
		library: "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3",
		dirs:    []string{"authz"},
		why:     "authz alone answers Envoy's checks",
	},
	{
		library: "github.com/redis/go-redis/v9",
		dirs:    []string{"internal/cache", "internal/devenv"},
		why:     "values in Redis are sealed and bounded by internal/cache",
	},
	{
		library: "github.com/golang-jwt/jwt/v5",
		dirs:    []string{"authz", "internal/identity", "internal/standin/provider"},
		why:     "backends know callers from internal/identity, never from a token",
	},
}

func confined(_ string, packages []Package) []string {
	var faults []string
	for _, pkg := range packages {
		if within(pkg.Dir, "test") {
			continue
		}
		for _, file := range pkg.Files {
			for _, imported := range file.Imports {
				for _, rule := range confinements {
					if !within(imported, rule.library) {
						continue
					}
					if !slices.ContainsFunc(rule.dirs, func(dir string) bool { return within(pkg.Dir, dir) }) {
						faults = append(faults, fmt.Sprintf("%s/%s: imports %s: %s", pkg.Dir, file.Name, imported, rule.why))
					}
				}
			}
		}
	}
	return faults
}

// within tells whether a slash-separated path is parent or below it.
func within(path, parent string) bool {
	rest, ok := strings.CutPrefix(path, parent)
	return ok && (rest == "" || rest[0] == '/')
}

// unlinked checks what the process with the signing key must never carry, by way
// of any of our packages.
func unlinked(module string, packages []Package) []string {
	const process = "cmd/authz"
	forbidden := []string{"github.com/redis/go-redis/v9", "github.com/getkin/kin-openapi"}

	byDir := map[string]Package{}
	for _, pkg := range packages {
		byDir[pkg.Dir] = pkg
	}
	var faults []string
	seen := map[string]bool{process: true}
	for queue := []string{process}; len(queue) > 0; queue = queue[1:] {
		pkg := byDir[queue[0]]
		for _, file := range pkg.Files {
			if file.Test {
				continue
			}
			for _, imported := range file.Imports {
				if slices.ContainsFunc(forbidden, func(library string) bool { return within(imported, library) }) {
					faults = append(faults, fmt.Sprintf("%s: reaches %s through %s/%s", process, imported, pkg.Dir, file.Name))
				}
				if target, ours := strings.CutPrefix(imported, module+"/"); ours && !seen[target] {
					seen[target] = true
					queue = append(queue, target)
				}
			}
		}
	}
	return faults
}
