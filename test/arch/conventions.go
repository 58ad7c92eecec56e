package arch

import (
	"fmt"
	"slices"
	"strings"
)

const (
	// maxLines is the length of a file, generated ones apart.
	maxLines = 600
	// minDocWords is what a sentence about ownership takes at least.
	minDocWords = 8
)

// emptyNames say nothing about what a package owns.
var emptyNames = []string{"base", "common", "helper", "helpers", "misc", "shared", "types", "util", "utils"}

// documented checks that every package says what it owns.
func documented(_ string, packages []Package) []string {
	var faults []string
	for _, pkg := range packages {
		want := "Package " + pkg.Name + " "
		if pkg.Name == "main" {
			want = "Command "
		}
		switch {
		case pkg.Doc == "":
			faults = append(faults, pkg.Dir+": the package has no doc comment")
		case !strings.HasPrefix(pkg.Doc, want):
			faults = append(faults, fmt.Sprintf("%s: the doc comment does not start with %q", pkg.Dir, want))
		case len(strings.Fields(pkg.Doc)) < minDocWords:
			faults = append(faults, pkg.Dir+": the doc comment does not say what the package owns")
		}
	}
	return faults
}

func named(_ string, packages []Package) []string {
	var faults []string
	for _, pkg := range packages {
		if slices.Contains(emptyNames, pkg.Name) {
			faults = append(faults, fmt.Sprintf("%s: the name %q says nothing about what the package owns", pkg.Dir, pkg.Name))
		}
	}
	return faults
}

func short(_ string, packages []Package) []string {
	var faults []string
	for _, pkg := range packages {
		for _, file := range pkg.Files {
			if !file.Generated && file.Lines > maxLines {
				faults = append(faults, fmt.Sprintf("%s/%s: %d lines, more than %d", pkg.Dir, file.Name, file.Lines, maxLines))
			}
		}
	}
	return faults
}

// awake checks that nothing waits by sleeping: code waits for an event or a timer
// with a context, tests wait for a condition or run in a synctest bubble.
func awake(_ string, packages []Package) []string {
	var faults []string
	for _, pkg := range packages {
		for _, file := range pkg.Files {
			for _, line := range file.Sleeps {
				faults = append(faults, fmt.Sprintf("%s/%s:%d: time.Sleep outside a synctest bubble", pkg.Dir, file.Name, line))
			}
		}
	}
	return faults
}
