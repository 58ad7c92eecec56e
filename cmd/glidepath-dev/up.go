package main

import (
	"context"
	"log/slog"
	"os"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/up"
)

type upCommand struct {
	Port int `default:"8080" env:"PORT" help:"Port on loopback where the gateway listens."`
}

// Run starts a gateway.
func (c *upCommand) Run(ctx context.Context) error {
	opts, err := options()
	if err != nil {
		return err
	}
	opts.Port = c.Port
	return up.Up(ctx, opts)
}

type downCommand struct{}

// Run stops the gateway.
func (*downCommand) Run(ctx context.Context) error {
	opts, err := options()
	if err != nil {
		return err
	}
	return up.Down(ctx, opts)
}

type statusCommand struct{}

// Run says what runs where.
func (*statusCommand) Run() error {
	opts, err := options()
	if err != nil {
		return err
	}
	return up.Status(opts)
}

// superviseCommand is what up starts in the background.
type superviseCommand struct {
	Port int `required:""`
}

// Run runs the gateway until it is told to end.
func (c *superviseCommand) Run(ctx context.Context) error {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("process", "supervisor"))
	root, err := devenv.Root()
	if err != nil {
		return err
	}
	return up.Supervise(ctx, root, c.Port)
}

func options() (up.Options, error) {
	root, err := devenv.Root()
	return up.Options{Root: root, Out: os.Stdout, Progress: progress()}, err
}
