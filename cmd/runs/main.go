// Command runs answers the reads of archived runs: what the cluster held and
// holds no more.
package main

import (
	"context"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/services/runs"
)

// garbage is how many percent of what lives in memory may be garbage before it
// is collected. A list that nobody has read yet goes through the process as tens
// of megabytes of JSON, while the process has little to do for those it knows: at
// Go's own 100, half of the memory would be what is thrown away.
const garbage = 40

func main() {
	var cfg runs.Config
	kong.Parse(&cfg,
		kong.Name("runs"),
		kong.Description("The backend of the Glidepath gateway's archived runs."),
		kong.ShortUsageOnError(),
	)
	lifecycle.AllowGarbage(garbage)
	lifecycle.LimitMemory(cfg.MemoryLimit())
	lifecycle.Main("runs", func(ctx context.Context) error { return runs.Run(ctx, cfg) })
}
