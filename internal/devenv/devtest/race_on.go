//go:build race

package devtest

// raceEnabled has the gateway's processes built with the race detector when the test is.
const raceEnabled = true
