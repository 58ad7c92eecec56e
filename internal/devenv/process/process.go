// Package process owns child processes: it starts one, waits until a probe says it is ready, and ends it together with
// everything it started. A child never outlives the program that started it, however that program ends.
package process

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"slices"
	"sync"
	"syscall"
	"time"
)

const (
	defaultReadyTimeout = time.Minute
	defaultStopTimeout  = 10 * time.Second
)

// Spec says what to run and when it counts as ready. It is not changed after Start.
type Spec struct {
	Name string   // in messages
	Path string   // the program
	Args []string // without the program's own name; never secrets, any user of the machine can read them
	Env  []string // NAME=value; of this program's own environment the process gets only what is about the machine
	Dir  string   // working directory; empty is this program's
	Log  string   // file that standard error is appended to
	// Stdout is a file that standard output is appended to; empty is Log.
	Stdout string
	// Ready probes once and returns nil when the process can be used. It is called again and again until then, each time
	// with a context of at most two seconds. Nil is ready at once.
	Ready        func(ctx context.Context) error
	ReadyTimeout time.Duration // for all probes together; 0 is one minute
	StopTimeout  time.Duration // from SIGTERM to SIGKILL; 0 is ten seconds
}

// Process is a child and its whole process group. All methods may be called concurrently.
type Process struct {
	spec Spec

	mu      sync.Mutex
	current *run // the latest start; never nil after Start
	stopped bool // Stop was called: there is no further start
}

// ErrStopped is returned by Restart after Stop.
var ErrStopped = errors.New("the process was stopped for good")

// Start runs spec and returns once it is ready. The context bounds the start alone; a ready process runs until Stop. A
// process that ends early or is not ready in time is an error that quotes the last lines of its log, and nothing is left behind.
func Start(ctx context.Context, spec Spec) (*Process, error) {
	p := &Process{spec: spec}
	if err := p.launch(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// Name is the name of the Spec.
func (p *Process) Name() string { return p.spec.Name }

// Args are those of the Spec.
func (p *Process) Args() []string { return slices.Clone(p.spec.Args) }

// PID is the process id of the latest start.
func (p *Process) PID() int { return p.latest().pid }

// Done is closed when the latest start has ended and was cleaned up after. A Restart makes a new one.
func (p *Process) Done() <-chan struct{} { return p.latest().done }

// Log is the file that holds what the process wrote to standard error.
func (p *Process) Log() string { return p.spec.Log }

// Tail returns the last lines that the latest start wrote to its log.
func (p *Process) Tail() string { return tail(p.spec.Log, p.latest().logStart) }

// Stop ends the process for good: SIGTERM, then SIGKILL after StopTimeout. Stopping twice is harmless.
func (p *Process) Stop() {
	p.mu.Lock()
	p.stopped = true
	r := p.current
	p.mu.Unlock()
	if r != nil {
		r.stop(orDefault(p.spec.StopTimeout, defaultStopTimeout))
	}
}

// Kill ends the process at once, as a crash would, and returns when it is gone. Restart starts it again.
func (p *Process) Kill() {
	r := p.latest()
	r.signal(syscall.SIGKILL)
	<-r.done
}

// Signal sends a signal to the process group; a process that has ended ignores it.
func (p *Process) Signal(sig syscall.Signal) { p.latest().signal(sig) }

// Pause stops the process where it stands (SIGSTOP): its connections stay open and nothing answers. Resume lets it go on.
func (p *Process) Pause() { p.Signal(syscall.SIGSTOP) }

// Resume lets a paused process go on.
func (p *Process) Resume() { p.Signal(syscall.SIGCONT) }

// Restart ends the process, if it still runs, and starts it again as it was first started. It returns when that one is ready.
func (p *Process) Restart(ctx context.Context) error {
	p.latest().stop(orDefault(p.spec.StopTimeout, defaultStopTimeout))
	return p.launch(ctx)
}

func (p *Process) latest() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.current
}

func (p *Process) launch(ctx context.Context) error {
	r, err := p.begin()
	if err != nil {
		return fmt.Errorf("starting %s: %w", p.spec.Name, err)
	}
	if err := p.awaitReady(ctx, r); err != nil {
		lines := tail(p.spec.Log, r.logStart)
		r.stop(orDefault(p.spec.StopTimeout, defaultStopTimeout))
		return fmt.Errorf("starting %s: %w; the end of %s:\n%s", p.spec.Name, err, p.spec.Log, lines)
	}
	return nil
}

// begin starts the program under the lock, so that a Stop at the same time either prevents it or sees it.
func (p *Process) begin() (*run, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.stopped {
		return nil, ErrStopped
	}
	if p.current != nil && !p.current.ended() {
		return nil, errors.New("it already runs")
	}
	r, err := startRun(p.spec)
	if err != nil {
		return nil, err
	}
	p.current = r
	return r, nil
}

func command(spec Spec) (cmd *exec.Cmd, closeLogs func(), err error) {
	log, err := openLog(spec.Log)
	if err != nil {
		return nil, nil, err
	}
	out := log
	if spec.Stdout != "" {
		if out, err = openLog(spec.Stdout); err != nil {
			return nil, nil, errors.Join(err, log.Close())
		}
	}
	cmd = exec.Command(spec.Path, spec.Args...) //nolint:noctx // it outlives the call that starts it
	cmd.Dir, cmd.Stdout, cmd.Stderr = spec.Dir, out, log
	cmd.Env = append(inherited(), spec.Env...)
	cmd.SysProcAttr = sysProcAttr()
	return cmd, func() {
		_ = log.Close()
		_ = out.Close() // the second close of the same file only reports that it is closed
	}, nil
}

func orDefault(d, otherwise time.Duration) time.Duration {
	if d == 0 {
		return otherwise
	}
	return d
}
