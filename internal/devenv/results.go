package devenv

import (
	"context"

	"hangar.io/glidepath/internal/standin/archiver"
	"hangar.io/glidepath/internal/standin/results"
)

// startResults starts the archive that runs reads, which stands in for the relay too, with what has finished of the sample
// fleet. It ends with the gateway.
func (g *Gateway) startResults(ctx context.Context) error {
	port, err := g.port()
	if err != nil {
		return err
	}
	g.Results, err = results.Start(results.Config{Addr: port.Addr()})
	if err != nil {
		return err
	}
	g.undo = append(g.undo, g.Results.Stop)
	runs, err := archiver.New(g.APIServer.Admin, g.Results)
	if err != nil {
		return err
	}
	if err := runs.Sweep(ctx); err != nil || !g.cfg.Archives {
		return err
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		runs.Run(ctx)
	}()
	g.undo = append(g.undo, func() { cancel(); <-ended })
	return nil
}
