package chaos_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/test/chaos/containers"
)

// What the tests of this package share.
var (
	docker *containers.Docker
	// errNoDocker says why there is no Docker.
	errNoDocker error
	apiServer   *devenv.APIServer
	network     *containers.Network
	// redisImage holds redis-server and the libraries that it loads.
	redisImage string
)

func TestMain(m *testing.M) {
	if docker, errNoDocker = containers.Open(context.Background()); errNoDocker != nil {
		os.Exit(m.Run()) // each test says so
	}
	code := devtest.Main(m, setup)
	if err := docker.Close(); err != nil {
		fmt.Fprintln(os.Stderr, "chaos:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}

func setup(ctx context.Context, dir string) (func(), error) {
	stop, err := devtest.StartAPIServer(&apiServer)(ctx, dir)
	if err != nil {
		return nil, err
	}
	path, err := devenv.Tool("redis-server")
	if err == nil {
		redisImage, err = docker.Build(ctx, containers.Image{Name: "redis-server", Program: path})
	}
	if err == nil {
		network, err = docker.Network(ctx, "chaos")
	}
	if err != nil {
		stop()
		return nil, err
	}
	return stop, nil
}

// needsDocker skips a test where there is no Docker. In CI there has to be one.
func needsDocker(t *testing.T) {
	t.Helper()
	switch {
	case errNoDocker == nil:
	case errors.Is(errNoDocker, containers.ErrNoDaemon) && os.Getenv("CI") == "":
		t.Skip(errNoDocker)
	default:
		t.Fatal(errNoDocker)
	}
}
