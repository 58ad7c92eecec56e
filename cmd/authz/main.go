// Command authz decides every call that comes to the gateway: it is Envoy's
// external authorization service, and answers whoami and getContract.
package main

import (
	"context"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/authz"
	"hangar.io/glidepath/internal/lifecycle"
)

func main() {
	var c authz.Config
	kong.Parse(&c,
		kong.Name("authz"),
		kong.Description("Decides the calls of the Glidepath gateway."),
		kong.ShortUsageOnError(),
	)
	lifecycle.Main("authz", func(ctx context.Context) error { return authz.Run(ctx, c) })
}
