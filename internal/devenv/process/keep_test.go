package process_test

import (
	"testing"

	"hangar.io/glidepath/internal/devenv/process"
)

func TestAKeptProcessThatEndsIsStartedAgain(t *testing.T) {
	p := start(t, shell(t, `: > "$READY"; exec sleep 60`))
	end := process.Keep(p)
	for range 2 {
		before := p.PID()
		p.Kill()
		eventually(t, "another process runs", func() bool { pid := p.PID(); return pid != before && alive(pid) })
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
	// It fails each second time: the first start makes the file that the second one stumbles over.
	p := start(t, shell(t, `if [ -e stumble ]; then rm stumble "$READY"; exit 1; fi; : > stumble; : > "$READY"; exec sleep 60`))
	defer process.Keep(p)()
	before := p.PID()
	p.Kill()
	eventually(t, "the start after the failed one runs", func() bool { pid := p.PID(); return pid != before && alive(pid) })
}
