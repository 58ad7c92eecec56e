package rules

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
)

// Where the rules and the list of finished areas are, below the repository root.
const (
	ListFile = "docs/rules.tsv"
	DoneFile = "docs/rules.done"
)

// Check reads the rules and the claims below root, prints the report to w, and
// returns every fault there is. It prints what it can even when there are faults.
func Check(root fs.FS, w io.Writer) error {
	list, listErr := readFile(root, ListFile, Read)
	done, doneErr := readFile(root, DoneFile, ReadDone)
	claims, scanErr := Scan(root)

	report := NewReport(list, claims, done)
	_, writeErr := report.WriteTo(w)
	return errors.Join(listErr, doneErr, scanErr, report.Faults, writeErr)
}

func readFile[T any](root fs.FS, name string, read func(io.Reader) (T, error)) (T, error) {
	var none T
	file, err := root.Open(name)
	if err != nil {
		return none, fmt.Errorf("opening a rules file: %w", err)
	}
	defer file.Close()
	value, err := read(file)
	if err != nil {
		return value, fmt.Errorf("%s: %w", name, err)
	}
	return value, nil
}
