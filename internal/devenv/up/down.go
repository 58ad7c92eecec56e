package up

import (
	"context"
	"errors"
	"fmt"

	"hangar.io/glidepath/internal/devenv/filelock"
)

// Down ends the gateway that Up started, and nothing else: processes are known by id and start time. Without one it does
// nothing. It returns when all is gone.
func Down(ctx context.Context, opts Options) error {
	f := folder(opts.Dir)
	st, running, err := f.read()
	if err != nil {
		return err
	}
	if !running {
		_, _ = fmt.Fprintln(opts.Out, "No gateway is running.")
		return errors.Join(st.endChildren(ctx), f.forget()) // of one that crashed
	}
	opts.Progress("stopping the gateway")
	killed, err := st.Supervisor.end(ctx, patience)
	if err != nil {
		return fmt.Errorf("stopping the gateway: %w", err)
	}
	if killed {
		opts.Progress("the supervisor did not end in time and was killed")
	}
	// The supervisor's lock is free once the kernel has let go of all it had.
	lock, err := filelock.Acquire(ctx, f.lock(), nil)
	if err != nil {
		return err
	}
	defer lock.Release()
	if err := errors.Join(st.endChildren(ctx), f.forget()); err != nil {
		return fmt.Errorf("stopping the gateway: %w", err)
	}
	_, _ = fmt.Fprintln(opts.Out, "The gateway is stopped.")
	return nil
}
