package authz_test

import (
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
)

// cluster is the real API server that the tests of this package share.
var cluster *devenv.APIServer

func TestMain(m *testing.M) {
	code := devtest.Main(m, devtest.StartAPIServer(&cluster))
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}
