package process_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"hangar.io/glidepath/internal/devenv/process"
)

// ownerVariable has this test binary own a process until it is killed, instead of running tests: it names the folder.
const ownerVariable = "PROCESS_TEST_OWNER"

func own() {
	dir := os.Getenv(ownerVariable)
	spec := process.Spec{
		Name: "owned", Path: "/bin/sh", Args: []string{"-c", "echo $$ > pid; exec sleep 60"}, Dir: dir, Log: filepath.Join(dir, "log"),
		Ready: func(context.Context) error { _, err := readPID(filepath.Join(dir, "pid")); return err },
	}
	if _, err := process.Start(context.Background(), spec); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return
	}
	select {}
}

func TestNoProcessOutlivesItsOwner(t *testing.T) {
	for name, sig := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "crashed": syscall.SIGABRT, "interrupted": syscall.SIGINT} {
		t.Run("an owner that is "+name, func(t *testing.T) {
			dir := t.TempDir()
			owner := exec.Command(os.Args[0])
			owner.Env = append(os.Environ(), ownerVariable+"="+dir)
			if err := owner.Start(); err != nil {
				t.Fatal(err)
			}
			var child int
			eventually(t, "the owner has started its process", func() bool {
				var err error
				child, err = readPID(filepath.Join(dir, "pid"))
				return err == nil
			})
			if !alive(child) {
				t.Fatal("the process does not run")
			}
			if err := owner.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
			_ = owner.Wait() // it was killed, and says so
			eventually(t, "the process is gone", func() bool { return !alive(child) })
		})
	}
}

func readPID(path string) (int, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return 0, err
	}
	if !strings.HasSuffix(string(data), "\n") {
		return 0, errors.New("not written yet")
	}
	return strconv.Atoi(strings.TrimSpace(string(data)))
}

// state is the letter that /proc has for a process: R, S, T, Z.
func state(pid int) string {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return ""
	}
	_, after, _ := strings.Cut(string(data), ") ")
	return after[:min(1, len(after))]
}
