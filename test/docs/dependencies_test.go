package docs

import (
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const dependencyRecord = "docs/adr/0014-dependencies.md"

var listed = regexp.MustCompile("(?m)^\\| `([^`]+)` \\|")

// TestEveryDirectDependencyHasAReason compares what Go files import, and what the
// tool modules build, with the record of dependencies, in both directions.
func TestEveryDirectDependencyHasAReason(t *testing.T) {
	t.Parallel()
	var recorded []string
	for _, match := range listed.FindAllStringSubmatch(read(t, dependencyRecord), -1) {
		recorded = append(recorded, match[1])
	}
	used := usedModules(t)
	for _, module := range used {
		if !slices.Contains(recorded, module) {
			t.Errorf("%s is used and not in %s", module, dependencyRecord)
		}
	}
	for _, module := range recorded {
		if !slices.Contains(used, module) {
			t.Errorf("%s is in %s and not used", module, dependencyRecord)
		}
	}
}

func usedModules(t *testing.T) []string {
	t.Helper()
	used := map[string]bool{}
	own := modulesOf(read(t, "go.mod"))
	for _, name := range find(t, ".go") {
		if inToolModule(name) {
			continue
		}
		for _, imported := range importsOf(t, name) {
			if module := owner(own, imported); module != "" {
				used[module] = true
			}
		}
	}
	mods, err := fs.Glob(root, "deploy/tools/*/go.mod")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range append(mods, "go.mod") {
		text := read(t, file)
		for _, tool := range toolsOf(text) {
			module := owner(modulesOf(text), tool)
			if module == "" {
				t.Errorf("%s: tool %s is of no required module", file, tool)
				continue
			}
			used[module] = true
		}
	}
	return slices.Sorted(maps.Keys(used))
}

// inToolModule tells whether a Go file belongs to a module under deploy/tools.
func inToolModule(name string) bool {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		if _, err := fs.Stat(root, path.Join(dir, "go.mod")); err == nil {
			return true
		}
	}
	return false
}

func importsOf(t *testing.T, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, read(t, name), parser.ImportsOnly)
	if err != nil {
		t.Fatal(err)
	}
	var imports []string
	for _, spec := range file.Imports {
		imports = append(imports, strings.Trim(spec.Path.Value, `"`))
	}
	return imports
}

var (
	requirement = regexp.MustCompile(`(?m)^(?:require )?\t?([a-z0-9][^\s()]*\.[^\s()]*) v[0-9]\S*`)
	tool        = regexp.MustCompile(`(?m)^tool (\S+)$`)
)

func modulesOf(gomod string) []string {
	var modules []string
	for _, match := range requirement.FindAllStringSubmatch(gomod, -1) {
		modules = append(modules, match[1])
	}
	return modules
}

func toolsOf(gomod string) []string {
	var tools []string
	for _, match := range tool.FindAllStringSubmatch(gomod, -1) {
		tools = append(tools, match[1])
	}
	return tools
}

// owner returns the longest module path that a package is within, "" for the
// standard library and this module.
func owner(modules []string, pkg string) string {
	longest := ""
	for _, module := range modules {
		if (pkg == module || strings.HasPrefix(pkg, module+"/")) && len(module) > len(longest) {
			longest = module
		}
	}
	return longest
}
