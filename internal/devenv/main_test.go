package devenv_test

import (
	"os"
	"testing"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
)

// api is one API server for the tests that do not disturb it.
var api *devenv.APIServer

func TestMain(m *testing.M) {
	code := devtest.Main(m, devtest.StartAPIServer(&api))
	if err := goleak.Find(); err != nil && code == 0 {
		println(err.Error())
		code = 1
	}
	os.Exit(code)
}
