package main

import (
	"context"
	"fmt"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/tools"
)

type toolsCommand struct {
	Names []string `arg:"" optional:"" help:"Tools to fetch; all that the gateway runs on when none is named."`
}

// Run fetches the tools.
func (c *toolsCommand) Run(ctx context.Context) error {
	root, err := devenv.Root()
	if err != nil {
		return err
	}
	return tools.Ensure(ctx, tools.Options{Root: root, Progress: progress()}, c.Names...)
}

// progress prints lines with the time since the beginning.
func progress() func(string) {
	begun := time.Now()
	return func(line string) {
		fmt.Printf("%6.1fs  %s\n", time.Since(begun).Seconds(), line)
	}
}
