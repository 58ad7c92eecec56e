package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/up"
)

// folder is where a gateway keeps its files; two gateways side by side have two.
type folder struct {
	Dir string `env:"GLIDEPATH_RUN" help:"Folder of the gateway's files; .run of the repository by default."`
}

type upCommand struct {
	folder
	Port int `default:"8080" env:"PORT" help:"Port on loopback where the gateway listens."`
}

// Run starts a gateway.
func (c *upCommand) Run(ctx context.Context) error {
	opts, err := c.options()
	if err != nil {
		return err
	}
	opts.Port = c.Port
	return up.Up(ctx, opts)
}

type downCommand struct{ folder }

// Run stops the gateway.
func (c *downCommand) Run(ctx context.Context) error {
	opts, err := c.options()
	if err != nil {
		return err
	}
	return up.Down(ctx, opts)
}

type statusCommand struct{ folder }

// Run says what runs where.
func (c *statusCommand) Run() error {
	opts, err := c.options()
	if err != nil {
		return err
	}
	return up.Status(opts)
}

// superviseCommand is what up starts in the background.
type superviseCommand struct {
	Dir  string `required:""`
	Port int    `required:""`
}

// Run runs the gateway until it is told to end.
func (c *superviseCommand) Run(ctx context.Context) error {
	slog.SetDefault(slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("process", "supervisor"))
	return up.Supervise(ctx, c.Dir, c.Port)
}

func (f folder) options() (up.Options, error) {
	root, err := devenv.Root()
	if err != nil {
		return up.Options{}, err
	}
	dir := filepath.Join(root, ".run")
	if f.Dir != "" {
		if dir, err = filepath.Abs(f.Dir); err != nil {
			return up.Options{}, fmt.Errorf("reading --dir: %w", err)
		}
	}
	return up.Options{Root: root, Dir: dir, Out: os.Stdout, Progress: progress()}, nil
}
