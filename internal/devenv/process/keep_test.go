package process_test

import (
	"testing"

	"hangar.io/glidepath/internal/devenv/process"
)

func TestAKeptProcessThatEndsIsStartedAgain(t *testing.T) {
	reports := make(chan error, 10)
	p := start(t, shell(t, `: > "$READY"; exec sleep 60`))
	end := process.Keep(func(_ *process.Process, err error) { reports <- err }, p)
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
	p := start(t, shell(t, `if [ -e stumble ]; then rm stumble "$READY"; exit 1; fi; : > stumble; : > "$READY"; exec sleep 60`))
	defer process.Keep(func(_ *process.Process, err error) { reports <- err }, p)()
	before := p.PID()
	p.Kill()
	eventually(t, "the start after the failed one runs", func() bool { pid := p.PID(); return pid != before && alive(pid) })
	if err := <-reports; err == nil {
		t.Error("the failed start was not reported")
	}
}
