package lifecycle_test

import (
	"runtime/debug"
	"testing"

	"hangar.io/glidepath/internal/lifecycle"
)

func TestTheEnvironmentWinsOverTheShareOfGarbageOfAProgram(t *testing.T) {
	begin := debug.SetGCPercent(100)
	defer debug.SetGCPercent(begin)
	t.Setenv("GOGC", "100")
	lifecycle.AllowGarbage(400)
	if got := debug.SetGCPercent(100); got != 100 {
		t.Errorf("with GOGC=100 it is %d", got)
	}
	t.Setenv("GOGC", "")
	lifecycle.AllowGarbage(400)
	if got := debug.SetGCPercent(100); got != 400 {
		t.Errorf("without GOGC it is %d", got)
	}
}

func TestTheEnvironmentWinsOverTheMemoryOfAProgram(t *testing.T) {
	begin := debug.SetMemoryLimit(1 << 40)
	defer debug.SetMemoryLimit(begin)
	t.Setenv("GOMEMLIMIT", "1TiB")
	lifecycle.LimitMemory(1 << 30)
	if got := debug.SetMemoryLimit(-1); got != 1<<40 {
		t.Errorf("with GOMEMLIMIT=1TiB it is %d", got)
	}
	t.Setenv("GOMEMLIMIT", "")
	lifecycle.LimitMemory(1 << 30)
	if got := debug.SetMemoryLimit(-1); got != 1<<30 {
		t.Errorf("without GOMEMLIMIT it is %d", got)
	}
}
