package streams_test

import (
	"context"
	"time"

	"hangar.io/glidepath/test/chaos/steps"
)

// fault is what happens to the parts of a gateway while the cluster changes and viewers look.
type fault struct {
	name string
	// steps are what happens. After each the cluster changes for a while; where it cannot, the step lasts for outage.
	steps []steps.Step
	// coarse says that what replicas know of the cluster may have to be read anew, so that viewers may be spared what came
	// in between.
	coarse bool
	// asleep has the drowsy sleep as long as it takes.
	asleep bool
}

// outage is how long the cluster is away.
const outage = 2 * time.Second

// restartAPIServer starts it again. What is not ready is no endpoint of a cluster's API server: until it has read the rights, it
// refuses everybody.
func (w *world) restartAPIServer(ctx context.Context) error {
	w.gw.Faults.Down()
	if err := apiServer.Process.Restart(ctx); err != nil {
		return err
	}
	return w.gw.Faults.Up()
}
