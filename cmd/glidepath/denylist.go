package main

import (
	"errors"
	"fmt"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/authz/denylist"
)

type denyListCommands struct {
	Check denyListCheckCommand `cmd:"" help:"Say whether authz would take a file, and what is wrong with it."`
}

type denyListCheckCommand struct {
	File string `arg:"" placeholder:"FILE" help:"The list, YAML."`
}

// exitBad ends the process where authz would refuse a file.
const exitBad = 1

// Run reads the file as authz does. Each fault is said with its line and column.
func (c *denyListCheckCommand) Run(k *kong.Kong) error {
	list, err := denylist.Read(c.File)
	if _, bad := errors.AsType[*denylist.ParseError](err); bad {
		return exit{err, exitBad}
	}
	if err != nil {
		return exit{err, exitFailed}
	}
	_, err = fmt.Fprintf(k.Stdout, "The deny-list is good: %d entries, epoch %s.\n", list.Len(), list.Epoch())
	return err
}
