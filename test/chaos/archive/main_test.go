package archive_test

import (
	"os"
	"testing"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
)

// apiServer is shared by the tests of this package.
var apiServer *devenv.APIServer

func TestMain(m *testing.M) { os.Exit(devtest.Main(m, devtest.StartAPIServer(&apiServer))) }
