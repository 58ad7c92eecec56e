package e2e_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/recorder"
)

// The gateway that the tests of this package share. Tests that break a part of
// it mend it before they end, and none of them runs in parallel with another.
// One that waits for long has a gateway of its own and runs after them.
var (
	gw *devenv.Gateway
	// planned stands behind the operations that no backend serves yet, so that
	// who may call them can be proved before they exist.
	planned *recorder.Recorder
	// tokens holds a token of the API server's own audience by caller.
	tokens = map[string]string{}
)

func TestMain(m *testing.M) {
	os.Exit(devtest.Main(m, func(ctx context.Context, dir string) (func(), error) {
		var err error
		if planned, err = recorder.Start(); err != nil {
			return nil, err
		}
		gw, err = devenv.StartGateway(ctx, devenv.GatewayConfig{
			Dir: dir, Faults: true, PlannedTo: planned.Addr, Race: devtest.Race,
			Args:     map[string][]string{"authz": {"--delegates=" + account(appDelegate).Username()}},
			Progress: func(line string) { fmt.Fprintln(os.Stderr, "e2e:", line) },
		})
		if err != nil {
			planned.Stop()
			return nil, err
		}
		stop := func() { gw.Stop(); planned.Stop() }
		for _, c := range fleet.Callers() {
			token, err := fleet.Token(ctx, gw.APIServer.Admin, c, time.Hour)
			if err != nil {
				stop()
				return nil, err
			}
			tokens[c.Name] = token
		}
		return stop, nil
	}))
}

// username is the name that the API server knows a sample caller by.
func username(t *testing.T, caller string) string {
	t.Helper()
	c, ok := fleet.LookupCaller(caller)
	if !ok {
		t.Fatalf("no sample caller %q", caller)
	}
	return c.Username()
}
