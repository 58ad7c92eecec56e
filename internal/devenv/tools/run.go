package tools

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

const (
	progressEvery = 15 * time.Second
	quotedLines   = 5
	killDelay     = 5 * time.Second
)

// run runs a command with its output in .tools/log/<name>.log and reports every quarter of a minute that it goes on. The error
// quotes the output's end.
func (m *maker) run(ctx context.Context, cmd *exec.Cmd, name string) error {
	path := filepath.Join(m.root, ".tools", "log", name+".log")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	log, err := os.Create(path)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd.Stdout, cmd.Stderr = log, log
	endWithGroup(cmd)
	if err := cmd.Start(); err != nil {
		return err
	}
	done := make(chan error, 1)
	go func() { done <- cmd.Wait() }()
	if err := m.await(done, name); err != nil {
		return quote(ctx, err, path)
	}
	return nil
}

func (m *maker) await(done <-chan error, name string) error {
	begun := time.Now()
	ticker := time.NewTicker(progressEvery)
	defer ticker.Stop()
	for {
		select {
		case err := <-done:
			return err
		case <-ticker.C:
			m.progress(fmt.Sprintf("still at %s, %s", name, time.Since(begun).Round(time.Second)))
		}
	}
}

// endWithGroup has cancelling end the command's children too: `go build` runs compilers, pip runs pip.
func endWithGroup(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = killDelay
}

func quote(ctx context.Context, err error, path string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	data, readErr := os.ReadFile(path)
	if readErr != nil {
		return errors.Join(err, readErr)
	}
	if bytes.Contains(bytes.ToLower(data), []byte(syscall.ENOSPC.Error())) {
		err = fmt.Errorf("%w: %w", err, syscall.ENOSPC)
	}
	lines := strings.Split(strings.TrimSpace(string(data)), "\n")
	lines = lines[max(0, len(lines)-quotedLines):]
	return fmt.Errorf("%w; the end of %s: %s", err, path, strings.Join(lines, " | "))
}

// runs asks the made program for its version: a program for another C library does not even start.
func runs(ctx context.Context, t tool, path string) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	out, err := exec.CommandContext(ctx, path, "--version").CombinedOutput()
	if err != nil {
		return fmt.Errorf("%s does not run on this machine, it needs glibc 2.31 or newer and libstdc++ (on Debian or Ubuntu: apt-get install libstdc++6): %w: %s",
			t.name, err, strings.TrimSpace(string(out)))
	}
	if !strings.Contains(string(out), t.version) {
		return fmt.Errorf("%s calls itself %q, not %s: its pin in deploy/tools/%s and its version differ", t.name, strings.TrimSpace(string(out)), t.version, t.name)
	}
	return nil
}
