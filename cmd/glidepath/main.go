// Command glidepath is for operators of the gateway and for those who call
// it.
package main

import (
	"github.com/alecthomas/kong"

	"hangar.io/glidepath/internal/terminal"
)

type cli struct {
	XDS      xdsCommands      `cmd:"" name:"xds" help:"What the edge serves: print it, or check it."`
	Explain  explainCommand   `cmd:"" help:"Say how a call would be decided, step by step, and why."`
	Replay   replayCommand    `cmd:"" help:"Say which past calls would be decided otherwise: by proposed roles, or now."`
	DenyList denyListCommands `cmd:"" name:"denylist" help:"The emergency deny-list: check a file."`
	Login    loginCommand     `cmd:"" help:"Sign in as a person, in a browser, and keep the token for an hour."`
	Logout   logoutCommand    `cmd:"" help:"Forget the token."`
	Token    tokenCommand     `cmd:"" help:"Print the token, for curl -H \"Authorization: Bearer $(glidepath token)\"."`
}

func main() {
	var c cli
	ctx := kong.Parse(&c, kong.Name("glidepath"), kong.Description("The command line of the Glidepath gateway."), kong.ShortUsageOnError())
	ctx.FatalIfErrorf(shown(ctx.Run()))
}

// plainError is an error whose text, which may quote a file or a server, does
// nothing to the terminal.
type plainError struct{ error }

// Error gives the text.
func (e plainError) Error() string { return terminal.Lines(e.error.Error()) }

// Unwrap gives the error itself, with its exit code.
func (e plainError) Unwrap() error { return e.error }

// shown makes an error fit to be printed.
func shown(err error) error {
	if err == nil {
		return nil
	}
	return plainError{err}
}
