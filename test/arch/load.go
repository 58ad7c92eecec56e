package arch

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
)

// Package is one folder with Go files. A package and its external tests, which
// share a folder, are one Package.
type Package struct {
	// Dir is relative to the root of the repository, with forward slashes.
	Dir string
	// Name is the name in the package clause, without a "_test" suffix.
	Name string
	// Doc is the package comment, "" when no file has one.
	Doc string
	// Files are in alphabetical order.
	Files []File
}

// File is one Go file of a package.
type File struct {
	Name            string
	Lines           int
	Test, Generated bool
	// Imports are the imported paths, as written.
	Imports []string
	// Sleeps are the lines that use time.Sleep on the real clock.
	Sleeps []int
}

// Load parses every Go file below root, in the order of folders. It leaves out
// what the go command leaves out, and folders that are modules of their own.
func Load(root fs.FS) ([]Package, error) {
	found := map[string]*Package{}
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && (ignored(entry.Name()) || isModule(root, name)) {
				return fs.SkipDir
			}
			return nil
		}
		if path.Ext(name) != ".go" {
			return nil
		}
		return load(root, name, found)
	})
	if err != nil {
		return nil, fmt.Errorf("loading the packages: %w", err)
	}
	var packages []Package
	for _, dir := range slices.Sorted(maps.Keys(found)) {
		packages = append(packages, *found[dir])
	}
	return packages, nil
}

func ignored(dir string) bool {
	return dir == "testdata" || dir == "vendor" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func isModule(root fs.FS, dir string) bool {
	_, err := fs.Stat(root, path.Join(dir, "go.mod"))
	return err == nil
}

func load(root fs.FS, name string, found map[string]*Package) error {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return fmt.Errorf("reading source: %w", err)
	}
	positions := token.NewFileSet()
	syntax, err := parser.ParseFile(positions, name, source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return fmt.Errorf("parsing source: %w", err)
	}
	file := File{
		Name:      path.Base(name),
		Lines:     bytes.Count(source, []byte("\n")),
		Test:      strings.HasSuffix(name, "_test.go"),
		Generated: ast.IsGenerated(syntax),
		Sleeps:    sleeps(positions, syntax),
	}
	for _, spec := range syntax.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return fmt.Errorf("parsing an import of %s: %w", name, err)
		}
		file.Imports = append(file.Imports, imported)
	}

	dir := path.Dir(name)
	pkg := found[dir]
	if pkg == nil {
		pkg = &Package{Dir: dir, Name: strings.TrimSuffix(syntax.Name.Name, "_test")}
		found[dir] = pkg
	}
	if pkg.Doc == "" && syntax.Doc != nil {
		pkg.Doc = syntax.Doc.Text()
	}
	pkg.Files = append(pkg.Files, file)
	return nil
}

// sleeps finds time.Sleep. Within a call of synctest.Test it only moves that
// bubble's clock, so it does not count there.
func sleeps(positions *token.FileSet, file *ast.File) []int {
	var lines []int
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.CallExpr:
			return !isSelector(node.Fun, "synctest", "Test")
		case *ast.SelectorExpr:
			if isSelector(node, "time", "Sleep") {
				lines = append(lines, positions.Position(node.Pos()).Line)
			}
		}
		return true
	})
	return lines
}

func isSelector(expression ast.Expr, pkg, name string) bool {
	selector, ok := expression.(*ast.SelectorExpr)
	if !ok || selector.Sel.Name != name {
		return false
	}
	from, ok := selector.X.(*ast.Ident)
	return ok && from.Name == pkg
}
