package cache

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
)

// waiting are the methods of the Redis client that wait for what is to come. Subscriptions have looked healthy and delivered
// nothing, their channels drop what is not taken, and reads that block do not end with their context: whoever wants to know
// what is new asks.
var waiting = []string{
	"Subscribe", "PSubscribe", "SSubscribe", "XRead", "XReadGroup", "XReadStreams",
	"BLPop", "BRPop", "BLMove", "BLMPop", "BRPopLPush", "BZPopMin", "BZPopMax", "BZMPop", "Wait", "WaitAOF",
}

func TestNobodyWaitsInRedisForWhatIsToCome(t *testing.T) {
	for _, file := range sources(t) {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, call := range waits(parsed) {
			t.Errorf("%s calls %s", file, call)
		}
	}
	bad, err := parser.ParseFile(token.NewFileSet(), "bad.go", "package x\nfunc f() { r.client.XRead(ctx, nil); wg.Wait() }", 0)
	if err != nil || !slices.Equal(waits(bad), []string{"XRead"}) {
		t.Errorf("found %q in what waits: %v", waits(bad), err)
	}
}

// sources are the files of this package that are no tests.
func sources(t *testing.T) []string {
	t.Helper()
	files, err := fs.Glob(os.DirFS("."), "*.go")
	if err != nil {
		t.Fatal(err)
	}
	files = slices.DeleteFunc(files, func(name string) bool { return strings.HasSuffix(name, "_test.go") })
	if len(files) < 10 {
		t.Fatalf("only %q", files)
	}
	return files
}

// waits gives the calls in a file of methods that wait; those without arguments are of a sync.WaitGroup.
func waits(file *ast.File) (found []string) {
	ast.Inspect(file, func(n ast.Node) bool {
		call, ok := n.(*ast.CallExpr)
		if !ok {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); ok && len(call.Args) > 0 && slices.Contains(waiting, s.Sel.Name) {
			found = append(found, s.Sel.Name)
		}
		return true
	})
	return found
}
