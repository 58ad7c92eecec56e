package main

import (
	"context"
	"os"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/fleet"
)

// cluster is a real API server with the sample fleet, for all tests here.
var cluster *devenv.APIServer

func TestMain(m *testing.M) {
	os.Exit(devtest.Main(m, func(ctx context.Context, dir string) (func(), error) {
		stop, err := devtest.StartAPIServer(&cluster)(ctx, dir)
		if err != nil {
			return nil, err
		}
		if err := fleet.Apply(ctx, cluster.Admin); err != nil {
			stop()
			return nil, err
		}
		return stop, nil
	}))
}

// caller gives the name of a sample caller and a token of it.
func caller(t *testing.T, name string, audiences ...string) (username, token string) {
	t.Helper()
	c, ok := fleet.LookupCaller(name)
	if !ok {
		t.Fatalf("no sample caller %q", name)
	}
	token, err := fleet.Token(t.Context(), cluster.Admin, c, time.Hour, audiences...)
	if err != nil {
		t.Fatal(err)
	}
	return c.Username(), token
}
