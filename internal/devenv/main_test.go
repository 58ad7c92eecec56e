package devenv_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
)

// api is one API server for all tests; one that kills it starts it again.
var api *devenv.APIServer

func TestMain(m *testing.M) {
	if dir := os.Getenv(ownerVariable); dir != "" {
		fmt.Fprintln(os.Stderr, own(dir))
		os.Exit(1)
	}
	code := devtest.Main(m, devtest.StartAPIServer(&api))
	if err := goleak.Find(); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}
