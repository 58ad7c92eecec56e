// Command runs answers the reads of archived runs: what the cluster held and
// holds no more.
package main

import (
	"context"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/services/runs"
)

func main() {
	var cfg runs.Config
	kong.Parse(&cfg,
		kong.Name("runs"),
		kong.Description("The backend of the Glidepath gateway's archived runs."),
		kong.ShortUsageOnError(),
	)
	lifecycle.Main("runs", func(ctx context.Context) error { return runs.Run(ctx, cfg) })
}
