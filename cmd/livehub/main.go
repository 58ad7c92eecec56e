// Command livehub answers the live reads of the API: the PipelineRuns and
// TaskRuns that the cluster holds now.
package main

import (
	"context"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/services/livehub"
)

func main() {
	var cfg livehub.Config
	kong.Parse(&cfg,
		kong.Name("livehub"),
		kong.Description("The backend of the Glidepath gateway's live reads."),
		kong.ShortUsageOnError(),
	)
	lifecycle.Main("livehub", func(ctx context.Context) error { return livehub.Run(ctx, cfg) })
}
