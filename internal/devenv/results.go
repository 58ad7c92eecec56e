package devenv

import "hangar.io/glidepath/internal/standin/results"

// startResults starts the archive that runs reads, which stands in for the relay too. It ends with the gateway.
func (g *Gateway) startResults() error {
	port, err := g.port()
	if err != nil {
		return err
	}
	g.Results, err = results.Start(results.Config{Addr: port.Addr()})
	if err != nil {
		return err
	}
	g.undo = append(g.undo, g.Results.Stop)
	return nil
}
