package rules

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Claim is one test's statement that it proves one rule.
type Claim struct {
	// Rule is the claimed id.
	Rule string
	// Test is the name of the test function.
	Test string
	// Pos is where the comment stands, as file:line below the scanned root.
	Pos string
}

var (
	// claimLike finds comments meant as a claim, so that a misspelt one is an
	// error instead of a rule that silently counts as unproved.
	claimLike = regexp.MustCompile(`(?i)^//\s*rules?\s*:.*\bR[0-9]`)
	claimForm = regexp.MustCompile(`^// rule: (R[0-9]{3}(?:, R[0-9]{3})*)$`)
)

// Scan finds the claims in every Go test file below root, whatever its build
// constraints. Folders named testdata or vendor and those that start with "." or
// "_" are left out, as the go command leaves them out. A malformed claim or one
// outside a test function is an error; all of them are reported together.
func Scan(root fs.FS) ([]Claim, error) {
	var (
		claims []Claim
		faults []error
	)
	err := fs.WalkDir(root, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name != "." && ignored(entry.Name()) {
				return fs.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(name, "_test.go") {
			return nil
		}
		found, err := scanFile(root, name)
		claims = append(claims, found...)
		if err != nil {
			faults = append(faults, err)
		}
		return nil
	})
	if err != nil {
		faults = append(faults, fmt.Errorf("walking the tests: %w", err))
	}
	return claims, errors.Join(faults...)
}

func ignored(dir string) bool {
	return dir == "testdata" || dir == "vendor" || strings.HasPrefix(dir, ".") || strings.HasPrefix(dir, "_")
}

func scanFile(root fs.FS, name string) ([]Claim, error) {
	source, err := fs.ReadFile(root, name)
	if err != nil {
		return nil, fmt.Errorf("reading a test file: %w", err)
	}
	positions := token.NewFileSet()
	file, err := parser.ParseFile(positions, path.Clean(name), source, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return nil, fmt.Errorf("parsing a test file: %w", err)
	}

	var (
		claims []Claim
		faults []error
	)
	for _, group := range file.Comments {
		for _, comment := range group.List {
			if !claimLike.MatchString(comment.Text) {
				continue
			}
			at := positions.Position(comment.Pos())
			pos := fmt.Sprintf("%s:%d", at.Filename, at.Line)
			ids, test, err := readClaim(file, comment)
			if err != nil {
				faults = append(faults, fmt.Errorf("%s: %w", pos, err))
				continue
			}
			for _, id := range ids {
				claims = append(claims, Claim{Rule: id, Test: test, Pos: pos})
			}
		}
	}
	return claims, errors.Join(faults...)
}

func readClaim(file *ast.File, comment *ast.Comment) (ids []string, test string, err error) {
	ids, err = claimed(comment.Text)
	if err != nil {
		return nil, "", err
	}
	function := enclosingTest(file, comment)
	if function == nil {
		return nil, "", errors.New("the claim belongs to no test function")
	}
	if alwaysSkips(function) {
		return nil, "", fmt.Errorf("%s claims a rule but is always skipped", function.Name.Name)
	}
	return ids, function.Name.Name, nil
}

func claimed(comment string) ([]string, error) {
	match := claimForm.FindStringSubmatch(comment)
	if match == nil {
		return nil, fmt.Errorf("claim %q is not of the form %q", comment, "// rule: R045, R046")
	}
	return strings.Split(match[1], ", "), nil
}

// enclosingTest returns the test whose body or doc comment holds the comment, nil
// when there is none.
func enclosingTest(file *ast.File, comment *ast.Comment) *ast.FuncDecl {
	for _, decl := range file.Decls {
		function, ok := decl.(*ast.FuncDecl)
		if !ok || function.Recv != nil || !isTest(function.Name.Name) {
			continue
		}
		start := function.Pos()
		if function.Doc != nil {
			start = function.Doc.Pos()
		}
		if start <= comment.Pos() && comment.End() <= function.End() {
			return function
		}
	}
	return nil
}

// alwaysSkips tells whether a statement of the test's own block is a bare skip. A
// skip under a condition is the business of whoever reads the test's output.
func alwaysSkips(test *ast.FuncDecl) bool {
	if test.Body == nil {
		return false
	}
	return slices.ContainsFunc(test.Body.List, func(statement ast.Stmt) bool {
		expression, ok := statement.(*ast.ExprStmt)
		if !ok {
			return false
		}
		call, ok := expression.X.(*ast.CallExpr)
		if !ok {
			return false
		}
		method, ok := call.Fun.(*ast.SelectorExpr)
		return ok && slices.Contains([]string{"Skip", "Skipf", "SkipNow"}, method.Sel.Name)
	})
}

// isTest applies the go command's own rule: the prefix, then nothing or a rune
// that is not lower case.
func isTest(name string) bool {
	for _, prefix := range []string{"Test", "Fuzz"} {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok || name == "TestMain" {
			continue
		}
		if first, _ := utf8.DecodeRuneInString(rest); rest == "" || !unicode.IsLower(first) {
			return true
		}
	}
	return false
}
