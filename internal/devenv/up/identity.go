package up

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// identity is a process that cannot be mistaken for a later one with the same id.
type identity struct {
	PID   int    `json:"pid"`
	Start string `json:"start"` // in the kernel's clock ticks since the machine started
}

const endPoll = 20 * time.Millisecond

func identify(pid int) identity { return identity{PID: pid, Start: startOf(pid)} }

// running says whether this very process runs; one that is dead and not yet reaped does not.
func (id identity) running() bool { return id.Start != "" && startOf(id.PID) == id.Start }

// end sends SIGTERM to the process and returns when it is gone, after SIGKILL if it takes longer than patience. It says
// whether SIGKILL was needed.
func (id identity) end(ctx context.Context, patience time.Duration) (killed bool, err error) {
	if gone, err := id.signal(ctx, syscall.SIGTERM, patience); gone || err != nil {
		return false, err
	}
	gone, err := id.signal(ctx, syscall.SIGKILL, patience)
	if err == nil && !gone {
		err = fmt.Errorf("process %d does not end", id.PID)
	}
	return true, err
}

// signal holds on to the process, by a file descriptor where the kernel has that, before it looks whether it is the right one.
func (id identity) signal(ctx context.Context, sig syscall.Signal, patience time.Duration) (gone bool, err error) {
	p, err := os.FindProcess(id.PID)
	if err != nil {
		return false, fmt.Errorf("looking for process %d: %w", id.PID, err)
	}
	defer func() { _ = p.Release() }()
	if !id.running() {
		return true, nil
	}
	if err := p.Signal(sig); err != nil && id.running() {
		return false, fmt.Errorf("ending process %d: %w", id.PID, err)
	}
	ticker := time.NewTicker(endPoll)
	defer ticker.Stop()
	late := time.NewTimer(patience)
	defer late.Stop()
	for id.running() {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("waiting for process %d to end: %w", id.PID, context.Cause(ctx))
		case <-late.C:
			return false, nil
		case <-ticker.C:
		}
	}
	return true, nil
}

// startOf reads the start time from /proc; it is empty for a process that is gone or dead.
func startOf(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	// The name, in parentheses, may hold anything. The fields after it begin with the third, the state; the start time is
	// the 22nd.
	text := string(data)
	fields := strings.Fields(text[strings.LastIndexByte(text, ')')+1:])
	if len(fields) < 20 || fields[0] == "Z" || fields[0] == "X" {
		return ""
	}
	return fields[19]
}
