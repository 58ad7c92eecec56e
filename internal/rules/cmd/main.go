// Command cmd prints which rules of docs/rules.tsv the tests of this repository
// prove, and exits with 1 when a claim or a finished area is wrong. Run it from
// anywhere as `make rules`.
package main

import (
	"flag"
	"fmt"
	"os"

	"hangar.io/glidepath/internal/rules"
)

func main() {
	root := flag.String("root", ".", "root of the repository")
	flag.Parse()
	if err := rules.Check(os.DirFS(*root), os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "\nrules: %v\n", err)
		os.Exit(1)
	}
}
