package process

import (
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// run is one start of a process.
type run struct {
	pid      int
	logStart int64 // where this start's lines begin in the log

	done chan struct{} // closed when the process is reaped
	err  error         // how it ended; read only after done

	mu     sync.Mutex
	reaped bool // the process id may belong to somebody else now
}

// startRun starts the program from a goroutine that owns its operating system thread until the program has ended: the
// kernel sends a child its parent-death signal when the thread that made it goes away, not the process.
func startRun(spec Spec) (*run, error) {
	r := &run{done: make(chan struct{}), logStart: size(spec.Log)}
	cmd, closeLogs, err := command(spec)
	if err != nil {
		return nil, err
	}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		closeLogs()
		if err == nil {
			r.pid = cmd.Process.Pid
		}
		started <- err
		if err == nil {
			r.wait(cmd)
		}
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return r, nil
}

// wait reaps the process. What is left of its group is killed first, while the dead leader still holds the group's id.
func (r *run) wait(cmd *exec.Cmd) {
	waitForExit(r.pid)
	r.mu.Lock()
	_ = syscall.Kill(-r.pid, syscall.SIGKILL)
	r.reaped = true
	r.mu.Unlock()
	r.err = cmd.Wait()
	close(r.done)
}

func (r *run) signal(sig syscall.Signal) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.reaped {
		_ = syscall.Kill(-r.pid, sig)
	}
}

func (r *run) stop(grace time.Duration) {
	r.signal(syscall.SIGTERM)
	r.signal(syscall.SIGCONT) // a paused process does not see SIGTERM
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-r.done:
		return
	case <-timer.C:
	}
	r.signal(syscall.SIGKILL)
	<-r.done
}

func (r *run) ended() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}
