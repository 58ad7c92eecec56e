// Command glidepath is for operators of the gateway and for those who call
// it.
package main

import (
	"github.com/alecthomas/kong"
)

type cli struct {
	XDS     xdsCommands    `cmd:"" name:"xds" help:"What the edge serves: print it, or check it."`
	Explain explainCommand `cmd:"" help:"Say how a call would be decided, step by step, and why."`
	Replay  replayCommand  `cmd:"" help:"Say which past calls would be decided otherwise: by proposed roles, or now."`
	Login   loginCommand   `cmd:"" help:"Sign in as a person, in a browser, and keep the token for an hour."`
	Logout  logoutCommand  `cmd:"" help:"Forget the token."`
	Token   tokenCommand   `cmd:"" help:"Print the token, for curl -H \"Authorization: Bearer $(glidepath token)\"."`
}

func main() {
	var c cli
	ctx := kong.Parse(&c, kong.Name("glidepath"), kong.Description("The command line of the Glidepath gateway."), kong.UsageOnError())
	ctx.FatalIfErrorf(ctx.Run())
}
