package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"time"

	"k8s.io/client-go/tools/clientcmd"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/simulator"
)

type simulateCommand struct {
	Kubeconfig   string        `required:"" env:"KUBECONFIG" help:"Of the API server with the sample fleet; .run/demo.env has it."`
	RunsInFlight int           `default:"6" help:"Unfinished runs of its own to keep going."`
	Seed         uint64        `default:"1" help:"Decides every run's name, pipeline and fate."`
	Retention    time.Duration `default:"10m" help:"How long a finished run stays."`
	Load         loadFlags     `embed:"" prefix:"load-"`
	Kubelet      kubeletFlags  `embed:"" prefix:"kubelet-"`
}

// Run simulates until the context ends.
func (c *simulateCommand) Run(ctx context.Context) error {
	if err := c.Load.validate(); err != nil {
		return err
	}
	cfg, err := clientcmd.BuildConfigFromFlags("", c.Kubeconfig)
	if err != nil {
		return fmt.Errorf("reading %s: %w", c.Kubeconfig, err)
	}
	if c.Load.Namespaces != 0 {
		return c.Load.run(ctx, cfg, c.Seed)
	}
	keeper, stop, err := c.Kubelet.start(ctx, cfg, c.Seed)
	if err != nil {
		return err
	}
	defer stop()
	s, err := simulator.New(simulator.Config{
		REST: cfg, Namespaces: fleet.AppNamespaces(), RunsInFlight: c.RunsInFlight, Seed: c.Seed, Retention: c.Retention, Pods: keeper,
		Logger: slog.New(slog.NewJSONHandler(os.Stderr, nil)).With("process", "simulator"),
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}
