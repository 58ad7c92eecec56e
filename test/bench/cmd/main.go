// Command bench measures the gateway and prints each figure as a line "name value" on standard output, and what it is doing
// on standard error.
package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/test/bench"
	"hangar.io/glidepath/test/bench/parts"
)

// options are those of the command line.
type options struct {
	Rows []string `arg:"" optional:"" help:"Rows to measure. None means all."`
	List bool     `help:"Name the rows and end."`
}

func main() {
	ran, err := parts.Main(os.Args[1:])
	if !ran {
		var o options
		kong.Parse(&o, kong.Name("bench"), kong.Description("Measures the Glidepath gateway on this machine."))
		err = run(o, os.Stdout)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1) //nolint:forbidigo // the one place that ends the process
	}
}

func run(o options, out io.Writer) (err error) {
	if o.List {
		return list(out)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer stop()
	dir, err := os.MkdirTemp("", "gp-bench-")
	if err != nil {
		return err
	}
	defer func() { err = keepFailed(dir, err) }()
	return bench.Run(ctx, bench.Options{
		Rows: o.Rows, Dir: dir, Progress: func(line string) { fmt.Fprintln(os.Stderr, "bench:", line) },
	}, out)
}

// keepFailed removes the folder, unless its logs may say why the bench failed.
func keepFailed(dir string, err error) error {
	if err != nil {
		return fmt.Errorf("%w; logs are in %s", err, dir)
	}
	return os.RemoveAll(dir)
}

func list(out io.Writer) error {
	for _, g := range bench.Groups() {
		for _, row := range g.Rows {
			if _, err := fmt.Fprintf(out, "%-28s %s\n", row, g.What); err != nil {
				return err
			}
		}
	}
	return nil
}
