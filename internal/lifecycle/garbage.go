package lifecycle

import (
	"os"
	"runtime/debug"
)

// AllowGarbage has the process collect its garbage when there is percent as
// much of it as lives in memory, unless GOGC says another share. It is for the
// first lines of a program. GOMEMLIMIT holds besides.
func AllowGarbage(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// LimitMemory has the process collect its garbage as often as it takes to stay
// within bytes of memory, unless GOMEMLIMIT says another number. What lives in memory
// is not bounded by it.
func LimitMemory(bytes int64) {
	if os.Getenv("GOMEMLIMIT") == "" {
		debug.SetMemoryLimit(bytes)
	}
}
