package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/xds"
)

type xdsCommands struct {
	Render renderCommand `cmd:"" help:"Print one static Envoy configuration: all that xds would send, and the bootstrap."`
	Check  checkCommand  `cmd:"" help:"Say whether a route policy and the certificates are good, and whether Envoy takes what is made of them."`
}

type renderCommand struct{ xds.RenderOptions }

// Run prints the configuration.
func (c *renderCommand) Run(k *kong.Kong) error {
	config, err := xds.Render(c.RenderOptions)
	if err != nil {
		return err
	}
	_, err = k.Stdout.Write(config)
	return err
}

type checkCommand struct {
	xds.RenderOptions
	Envoy string `env:"ENVOY" placeholder:"FILE" help:"Envoy binary. Empty looks in PATH and in .tools/bin."`
}

// checkTime bounds how long Envoy may think.
const checkTime = time.Minute

// Run says what is wrong, or that nothing is.
func (c *checkCommand) Run(k *kong.Kong) error {
	config, err := xds.Render(c.RenderOptions)
	if err != nil {
		return err
	}
	if err := c.CheckFiles(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), checkTime)
	defer cancel()
	switch err := xds.Validate(ctx, config, c.Envoy); {
	case errors.Is(err, xds.ErrNoEnvoy):
		_, err = fmt.Fprintln(k.Stdout, "The policy is good. Envoy was not asked: it is neither in PATH nor in .tools/bin (make tools).")
		return err
	case err != nil:
		return err
	}
	_, err = fmt.Fprintln(k.Stdout, "The policy is good, and Envoy takes what is made of it.")
	return err
}
