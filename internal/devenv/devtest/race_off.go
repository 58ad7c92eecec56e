//go:build !race

package devtest

// Race says that the test runs with the race detector. The gateway's processes are then built with it too.
const Race = false
