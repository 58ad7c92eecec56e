package main

import (
	"errors"
	"fmt"
	"time"

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
	entries, over := "entries", ""
	if list.Len() == 1 {
		entries = "entry"
	}
	if n := list.Over(time.Now()); n > 0 {
		over = fmt.Sprintf(", %d of them ended", n)
	}
	_, err = fmt.Fprintf(k.Stdout, "The deny-list is good: %d %s%s, epoch %s.\n", list.Len(), entries, over, list.Epoch())
	return err
}
