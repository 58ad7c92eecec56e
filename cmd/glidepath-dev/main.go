// Command glidepath-dev fetches the pinned tools and starts, shows and stops a whole gateway on this machine.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
)

type cli struct {
	Up        upCommand        `cmd:"" help:"Start a gateway in the background, unless one runs."`
	Down      downCommand      `cmd:"" help:"Stop the gateway."`
	Status    statusCommand    `cmd:"" help:"Say what runs where."`
	Simulate  simulateCommand  `cmd:"" help:"Give the sample fleet's runs a life, until interrupted; up does it too."`
	Tools     toolsCommand     `cmd:"" help:"Fetch or build what is missing of the pinned tools."`
	Supervise superviseCommand `cmd:"" hidden:""`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	parsed := kong.Parse(&cli{},
		kong.Name("glidepath-dev"),
		kong.Description("A whole gateway on this machine."),
		kong.BindTo(ctx, (*context.Context)(nil)),
		kong.UsageOnError(),
	)
	err := parsed.Run()
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "glidepath-dev:", err)
		os.Exit(1)
	}
}
