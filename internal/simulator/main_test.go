package simulator_test

import (
	"context"
	"os"
	"testing"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/fleet"
)

// api knows PipelineRuns and TaskRuns. Every test uses a namespace of its own.
var api *devenv.APIServer

func TestMain(m *testing.M) {
	os.Exit(devtest.Main(m, func(ctx context.Context, dir string) (func(), error) {
		stop, err := devtest.StartAPIServer(&api)(ctx, dir)
		if err != nil {
			return nil, err
		}
		if err := fleet.Apply(ctx, api.Admin); err != nil {
			stop()
			return nil, err
		}
		return stop, nil
	}))
}
