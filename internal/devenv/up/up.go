package up

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"

	"hangar.io/glidepath/internal/devenv/filelock"
	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/devenv/tools"
)

const (
	readyPoll = 100 * time.Millisecond
	patience  = 45 * time.Second // for a supervisor that was asked to end: each of its processes may take its time
)

// Options says which gateway.
type Options struct {
	Root     string            // the repository
	Dir      string            // all files of the gateway; absolute
	Port     int               // where the gateway listens
	Out      io.Writer         // what runs where, for a person
	Progress func(line string) // told what is being done
}

// Up starts a gateway in the background, unless one runs, and returns when it answers. The program that calls it must have a
// command `supervise`, which calls Supervise.
func Up(ctx context.Context, opts Options) error {
	f := folder(opts.Dir)
	lock, err := filelock.Acquire(ctx, f.upLock(), func() { opts.Progress("another `up` is under way: waiting for it") })
	if err != nil {
		return err
	}
	defer lock.Release()
	running, err := f.awaitEarlier(ctx, opts)
	if err != nil {
		return err
	}
	if running {
		_, _ = fmt.Fprintln(opts.Out, "The gateway is already running.")
		return f.summary(opts.Out)
	}
	if err := f.clean(ctx); err != nil {
		return err
	}
	if !ports.Free(opts.Port) {
		return fmt.Errorf("port %d is in use: stop what listens there, or choose another one with `make up PORT=%d`", opts.Port, opts.Port+1)
	}
	if err := tools.Ensure(ctx, tools.Options{Root: opts.Root, Progress: opts.Progress}); err != nil {
		return err
	}
	if err := f.spawn(ctx, opts); err != nil {
		return err
	}
	return f.summary(opts.Out)
}

// awaitEarlier says whether a gateway runs already. One that is being started, by an Up that was ended, is waited for.
func (f folder) awaitEarlier(ctx context.Context, opts Options) (bool, error) {
	ticker := time.NewTicker(readyPoll)
	defer ticker.Stop()
	for {
		st, running, err := f.read()
		switch {
		case err != nil || !running:
			return false, err
		case st.Port != opts.Port:
			return false, fmt.Errorf("a gateway runs on port %d already: run `make down` first to have it on port %d", st.Port, opts.Port)
		case st.Ready:
			return true, nil
		}
		select {
		case <-ctx.Done():
			return false, context.Cause(ctx)
		case <-ticker.C:
		}
	}
}

// clean ends what a supervisor that is gone left running and removes its files.
func (f folder) clean(ctx context.Context) error {
	st, _, err := f.read()
	if err != nil {
		return err
	}
	if err := st.endChildren(ctx); err != nil {
		return err
	}
	if err := errors.Join(os.RemoveAll(f.gateway()), os.RemoveAll(f.sockets()), f.forget()); err != nil {
		return fmt.Errorf("removing what an earlier run left: %w", err)
	}
	return nil
}

// spawn starts the supervisor in a session of its own and follows it until the gateway is ready.
func (f folder) spawn(ctx context.Context, opts Options) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("looking for this program: %w", err)
	}
	log, err := os.OpenFile(f.log(), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("opening the supervisor's log: %w", err)
	}
	defer log.Close()
	pipe, theirs, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("making a pipe: %w", err)
	}
	defer pipe.Close()
	// The context does not end the supervisor: it outlives this program on purpose.
	cmd := exec.Command(self, "supervise", "--dir="+opts.Dir, "--port="+strconv.Itoa(opts.Port)) //nolint:noctx // see above
	cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.ExtraFiles = opts.Root, log, log, []*os.File{theirs}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	_ = theirs.Close() // so that the supervisor's end is the pipe's end
	if err != nil {
		return fmt.Errorf("starting the supervisor: %w", err)
	}
	stop := context.AfterFunc(ctx, func() { _ = cmd.Process.Signal(syscall.SIGTERM) }) // it ends the pipe when all is undone
	defer stop()
	err = follow(pipe, opts.Progress, f.log())
	if ctx.Err() != nil {
		return errors.Join(context.Cause(ctx), cmd.Wait())
	}
	if err != nil {
		_ = cmd.Wait() // it said why it failed
	}
	return err
}
