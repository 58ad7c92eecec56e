// Package report owns what is printed of a suite of tests: it reads the events of
// `go test -json`, prints what `go test` prints without it, and then which tests
// were skipped and which took longest.
package report
