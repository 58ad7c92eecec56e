package process_test

import (
	"os"
	"path/filepath"
	"testing"

	"hangar.io/glidepath/internal/devenv/process"
)

func TestAKeptProcessThatEndsIsStartedAgain(t *testing.T) {
	reports := make(chan error, 10)
	p := start(t, shell(t, `: > "$READY"; exec sleep 60`))
	end := process.Keep(t.Context(), func(_ *process.Process, err error) { reports <- err }, p)
	for range 2 {
		before := p.PID()
		p.Kill()
		eventually(t, "another process runs", func() bool { pid := p.PID(); return pid != before && alive(pid) })
		if err := <-reports; err != nil {
			t.Errorf("reported %v", err)
		}
	}
	end()
	last, done := p.PID(), p.Done()
	p.Kill()
	<-done
	if p.PID() != last {
		t.Error("it was started again after the keeping had ended")
	}
}

func TestKeepingGoesOnWhenAStartFails(t *testing.T) {
	reports := make(chan error, 10)
	// It fails each second time: the first start makes the file that the second one stumbles over.
	spec := shell(t, `if [ -e stumble ]; then rm stumble; exit 1; fi; : > stumble; : > "$READY"; exec sleep 60`)
	p := start(t, spec)
	defer process.Keep(t.Context(), func(_ *process.Process, err error) { reports <- err }, p)()
	before := p.PID()
	if err := os.Remove(filepath.Join(spec.Dir, "ready")); err != nil {
		t.Fatal(err)
	}
	p.Kill()
	if err := <-reports; err == nil {
		t.Error("the failed start was not reported")
	}
	if err := <-reports; err != nil {
		t.Errorf("the start after it failed: %v", err)
	}
	if p.PID() == before || !alive(p.PID()) {
		t.Error("it does not run")
	}
}
