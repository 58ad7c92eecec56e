package devenv

import (
	"context"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/provider"
)

// startProvider starts the provider that the sample people sign in with. It ends with the gateway.
func (g *Gateway) startProvider(ctx context.Context) error {
	port, err := g.port()
	if err != nil {
		return err
	}
	var people []provider.Person
	for _, p := range fleet.People() {
		people = append(people, provider.Person{Login: p.Login, Name: p.Does, UserID: p.UserID})
	}
	g.Provider, err = provider.Start(ctx, provider.Config{Addr: port.Addr(), People: people})
	if err != nil {
		return err
	}
	g.undo = append(g.undo, g.Provider.Stop)
	return nil
}
