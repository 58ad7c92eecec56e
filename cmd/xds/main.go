// Command xds is the control plane of the edge: it keeps Envoy supplied with
// its configuration.
package main

import (
	"context"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/internal/lifecycle"
	"hangar.io/glidepath/xds"
)

func main() {
	var opts xds.Options
	kong.Parse(&opts, kong.Name("xds"), kong.Description("The control plane of the edge."))
	lifecycle.Main("xds", func(ctx context.Context) error { return xds.Run(ctx, opts) })
}
