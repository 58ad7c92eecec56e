// Command authz decides every call that comes to the gateway: it is Envoy's
// external authorization service, and answers whoami and getContract.
package main

import (
	"context"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/authz"
	"hangar.io/glidepath/internal/lifecycle"
)

// garbage is how many percent of what lives in memory may be garbage before it
// is collected. A check leaves ten kilobytes and some megabytes live: at Go's
// own 100, a sixth of a check's CPU is the collector's.
const garbage = 400

func main() {
	var c authz.Config
	kong.Parse(&c,
		kong.Name("authz"),
		kong.Description("Decides the calls of the Glidepath gateway."),
		kong.ShortUsageOnError(),
	)
	lifecycle.AllowGarbage(garbage)
	lifecycle.Main("authz", func(ctx context.Context) error { return authz.Run(ctx, c) })
}
