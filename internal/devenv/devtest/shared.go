package devtest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"testing"

	"hangar.io/glidepath/internal/devenv"
)

// Main is the body of a TestMain whose tests share what setup starts, one API server for instance. The folder is removed and
// the function that setup returns is called when the tests are done. Nothing is started to list the tests alone. It returns
// the exit code:
//
//	func TestMain(m *testing.M) { os.Exit(devtest.Main(m, setup)) }
func Main(m *testing.M, setup func(ctx context.Context, dir string) (teardown func(), err error)) int {
	flag.Parse()
	if list := flag.Lookup("test.list"); list != nil && list.Value.String() != "" {
		return m.Run()
	}
	dir, err := os.MkdirTemp("", "gp-")
	if err != nil {
		fmt.Fprintln(os.Stderr, "devtest:", err)
		return 1
	}
	defer os.RemoveAll(dir)
	teardown, err := setup(context.Background(), dir)
	if err != nil {
		fmt.Fprintln(os.Stderr, "devtest:", err)
		return 1
	}
	defer teardown()
	return m.Run()
}

// StartAPIServer is a setup for Main that keeps the started API server in *into.
func StartAPIServer(into **devenv.APIServer) func(context.Context, string) (func(), error) {
	return func(ctx context.Context, dir string) (func(), error) {
		a, err := devenv.StartAPIServer(ctx, devenv.APIServerConfig{Dir: dir})
		if err != nil {
			return nil, err
		}
		*into = a
		return a.Stop, nil
	}
}
