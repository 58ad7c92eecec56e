package arch

import (
	"fmt"
	"strings"
)

// layer places a folder of the repository. Folders of one component, such as
// services/livehub and what is below it, may import each other.
type layer struct {
	// rank orders the layers: a folder imports from its own component or from a
	// lower rank, never from a higher one.
	rank int
	// component separates folders of one rank.
	component string
}

const (
	rankAPI = iota + 1
	rankInternal
	rankComponent
	rankCommand
	rankTest
)

// place tells the layer of a folder. A folder that is in none must be given one
// here before it may hold Go code.
func place(dir string) (layer, bool) {
	top, rest, _ := strings.Cut(dir, "/")
	second, _, _ := strings.Cut(rest, "/")
	switch top {
	case "api", "envoy":
		return layer{rankAPI, top}, true
	case "internal":
		return layer{rankInternal, "internal"}, true
	case "authz", "xds":
		return layer{rankComponent, top}, true
	case "services":
		return layer{rankComponent, "services/" + second}, second != ""
	case "cmd":
		return layer{rankCommand, "cmd/" + second}, second != ""
	case "test":
		return layer{rankTest, "test"}, true
	}
	return layer{}, false
}

// arrows checks that imports within the module point one way:
//
//	test -> cmd -> authz, xds, services -> internal -> api, envoy
//
// The contract and the edge's bootstrap import nothing of ours. Components never import each other, commands never import each other, and only
// test imports test. Test files keep the arrows too.
func arrows(module string, packages []Package) []string {
	var faults []string
	for _, pkg := range packages {
		from, ok := place(pkg.Dir)
		if !ok {
			faults = append(faults, pkg.Dir+": the folder is in no layer")
			continue
		}
		for _, file := range pkg.Files {
			for _, imported := range file.Imports {
				target, ours := strings.CutPrefix(imported, module+"/")
				if !ours {
					continue
				}
				to, ok := place(target)
				switch {
				case ok && to == from:
				case ok && to.rank < from.rank:
				default:
					faults = append(faults, fmt.Sprintf("%s/%s: imports %s, against the arrows", pkg.Dir, file.Name, target))
				}
			}
		}
	}
	return faults
}

// tool is the command that is no process of the gateway: it holds no key of one,
// and shows operators what several components would do, by their own code.
const tool = "cmd/glidepath"

// oneComponent checks that a command is the process of one component at most, so
// that the process with the signing key carries nothing of another service.
func oneComponent(module string, packages []Package) []string {
	var faults []string
	first := map[string]string{}
	for _, pkg := range packages {
		from, _ := place(pkg.Dir)
		if from.rank != rankCommand || from.component == tool {
			continue
		}
		for _, file := range pkg.Files {
			for _, imported := range file.Imports {
				to, _ := place(strings.TrimPrefix(imported, module+"/"))
				if to.rank != rankComponent {
					continue
				}
				if first[from.component] == "" {
					first[from.component] = to.component
				}
				if known := first[from.component]; known != to.component {
					faults = append(faults, fmt.Sprintf("%s/%s: imports %s, and the command is already %s", pkg.Dir, file.Name, to.component, known))
				}
			}
		}
	}
	return faults
}
