// Command cmd prints what the events of `go test -json` on its standard input
// say, as `go test` would, and which tests took longest. It ends with 0 whatever
// the tests did: the exit code of `go test` says that.
package main

import (
	"flag"
	"fmt"
	"os"

	"hangar.io/glidepath/test/report"
)

func main() {
	slowest := flag.Int("slowest", 10, "how many of the slowest tests are named")
	flag.Parse()
	if err := report.Print(os.Stdin, os.Stdout, *slowest); err != nil {
		fmt.Fprintf(os.Stderr, "report: %v\n", err)
		os.Exit(1) //nolint:forbidigo // the one place that ends the process
	}
}
