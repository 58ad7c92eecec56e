package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/internal/outbound"
	"hangar.io/glidepath/internal/signin"
	"hangar.io/glidepath/internal/terminal"
)

// tokenPlace is where the person's token is kept.
type tokenPlace struct {
	TokenFile string `env:"GLIDEPATH_TOKEN_FILE" placeholder:"FILE" help:"Where the token is kept. Empty: glidepath/id-token in $XDG_STATE_HOME, or in ~/.local/state."`
}

func (f tokenPlace) path() (string, error) {
	if f.TokenFile != "" {
		return f.TokenFile, nil
	}
	return signin.DefaultFile(os.Getenv)
}

type loginCommand struct {
	tokenPlace
	Issuer string           `env:"GLIDEPATH_OIDC_ISSUER" required:"" placeholder:"URL" help:"The provider that people sign in with."`
	Client string           `env:"GLIDEPATH_OIDC_CLIENT" default:"glidepath-api" help:"The gateway's client at the provider."`
	Server outbound.Options `embed:"" prefix:"oidc-" envprefix:"GLIDEPATH_OIDC_"`
}

// Run signs in and keeps the token.
func (c *loginCommand) Run(k *kong.Kong) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	transport, err := c.transport()
	if err != nil {
		return err
	}
	defer transport.CloseIdleConnections()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	defer stop()
	token, err := signin.Login(ctx, signin.Config{
		Issuer: c.Issuer, Client: c.Client, Transport: transport,
		// Standard error, so that what is done with the output is not disturbed.
		Show: func(p signin.Prompt) { showPrompt(k.Stderr, p) },
	})
	if errors.Is(err, context.Canceled) {
		return errors.New("given up: nobody is signed in")
	}
	if err != nil {
		return err
	}
	if err := signin.Save(file, token); err != nil {
		return err
	}
	_, err = fmt.Fprintf(k.Stderr, "Signed in as %s until %s. Use it with: curl -H \"Authorization: Bearer $(%s token)\"\n",
		terminal.Line(token.Login), token.Expires.Local().Format(zonedTime), os.Args[0])
	return err
}

// zonedTime is how a time of today is shown: a container's clock is often in another zone than its user.
const zonedTime = "15:04:05 MST"

// showPrompt says where to sign in. Its words are the provider's.
func showPrompt(w io.Writer, p signin.Prompt) {
	_, _ = fmt.Fprintf(w, "Go to    %s\nand enter %s\n", terminal.Line(p.Address), terminal.Line(p.Code))
	if p.Complete != "" {
		_, _ = fmt.Fprintf(w, "or open  %s\n", terminal.Line(p.Complete))
	}
	_, _ = fmt.Fprintf(w, "Waiting until %s. Ctrl-C gives up.\n", p.Expires.Local().Format(zonedTime))
}

func (c *loginCommand) transport() (*outbound.Transport, error) {
	if err := c.Server.Validate(); err != nil {
		return nil, err
	}
	source, err := outbound.NewSource("the provider", c.Server)
	if err != nil {
		return nil, err
	}
	proxies, err := outbound.ProxiesFromEnvironment()
	if err != nil {
		return nil, err
	}
	return source.Transport(proxies, outbound.Bounds{Connections: 2}), nil
}

type logoutCommand struct{ tokenPlace }

// Run forgets the token.
func (c *logoutCommand) Run(*kong.Kong) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	return signin.Remove(file)
}

type tokenCommand struct{ tokenPlace }

// Run prints the token, as long as it is good.
func (c *tokenCommand) Run(k *kong.Kong) error {
	file, err := c.path()
	if err != nil {
		return err
	}
	token, err := signin.Load(file)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintln(k.Stdout, token.Secret())
	return err
}
