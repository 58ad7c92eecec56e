package process_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/devenv/process"
)

func TestMain(m *testing.M) {
	if os.Getenv(ownerVariable) != "" {
		own()
		return
	}
	goleak.VerifyTestMain(m)
}

// shell is a process that runs a script and is ready when the file $READY exists.
func shell(t *testing.T, script string) process.Spec {
	t.Helper()
	dir := t.TempDir()
	ready := filepath.Join(dir, "ready")
	return process.Spec{
		Name: "script", Path: "/bin/sh", Args: []string{"-c", script}, Env: []string{"READY=" + ready}, Dir: dir,
		Log: filepath.Join(dir, "log"), ReadyTimeout: 20 * time.Second, StopTimeout: 10 * time.Second,
		Ready: func(context.Context) error {
			_, err := os.Stat(ready)
			return err
		},
	}
}

func start(t *testing.T, spec process.Spec) *process.Process {
	t.Helper()
	p, err := process.Start(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return p
}

// alive says whether a process runs; one that is dead and not yet reaped, by whoever inherited it, does not.
func alive(pid int) bool { return syscall.Kill(pid, 0) == nil && state(pid) != "Z" }

// eventually polls for what the kernel does a moment later.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(20 * time.Second)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-ticker.C:
		}
	}
}

func TestStartReturnsWhenTheProbeIsContent(t *testing.T) {
	spec := shell(t, `: > "$READY"; exec sleep 60`)
	p := start(t, spec)
	if err := spec.Ready(t.Context()); err != nil {
		t.Errorf("it was returned before it was ready: %v", err)
	}
	if !alive(p.PID()) {
		t.Error("it does not run")
	}
}

func TestAProcessThatEndsEarlyIsAnErrorWithTheEndOfItsLog(t *testing.T) {
	spec := shell(t, `echo "first line of many"; echo "port in use" >&2; exit 3`)
	if err := os.WriteFile(spec.Log, []byte("a line of an earlier start\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := process.Start(t.Context(), spec)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"starting script", "exit status 3", "first line of many\nport in use", spec.Log} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	if strings.Contains(err.Error(), "earlier start") {
		t.Errorf("%q quotes an earlier start", err)
	}
}

func TestAProcessThatIsNotReadyInTimeIsEnded(t *testing.T) {
	spec := shell(t, `echo $$ > pid; exec sleep 60`)
	pidFile := filepath.Join(spec.Dir, "pid")
	spec.ReadyTimeout = 300 * time.Millisecond
	spec.Ready = func(context.Context) error { return errors.New("knocked in vain") }
	_, err := process.Start(t.Context(), spec)
	if err == nil || !strings.Contains(err.Error(), "not ready within 300ms") || !strings.Contains(err.Error(), "knocked in vain") {
		t.Errorf("got %v", err)
	}
	if pid, err := readPID(pidFile); err == nil && alive(pid) {
		t.Error("it still runs")
	}
}

func TestStartGivesUpWithItsContext(t *testing.T) {
	spec := shell(t, `exec sleep 60`)
	ctx, cancel := context.WithCancel(t.Context())
	spec.Ready = func(context.Context) error { cancel(); return errors.New("not yet") }
	if _, err := process.Start(ctx, spec); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}

func TestStopEndsWhatTheProcessStartedToo(t *testing.T) {
	for name, script := range map[string]string{
		"a polite leader":                        `sleep 60 & echo $! > child; : > "$READY"; wait`,
		"a leader that ends before its child":    `(trap '' TERM; sleep 60; sleep 60) & echo $! > child; : > "$READY"; wait`,
		"a leader and child deaf to SIGTERM":     `trap '' TERM; (trap '' TERM; sleep 60) & echo $! > child; : > "$READY"; while :; do wait; done`,
		"a leader that is gone with SIGTERM set": `trap 'exit 0' TERM; sleep 60 & echo $! > child; : > "$READY"; wait`,
	} {
		t.Run(name, func(t *testing.T) {
			spec := shell(t, script)
			spec.StopTimeout = 200 * time.Millisecond
			p := start(t, spec)
			child, err := readPID(filepath.Join(spec.Dir, "child"))
			if err != nil {
				t.Fatal(err)
			}
			leader := p.PID()
			p.Stop()
			p.Stop() // twice is harmless
			if alive(leader) {
				t.Error("the leader still runs")
			}
			eventually(t, "the child is gone", func() bool { return !alive(child) })
			if err := p.Restart(t.Context()); !errors.Is(err, process.ErrStopped) {
				t.Errorf("restarting what was stopped for good: %v", err)
			}
		})
	}
}

func TestAKilledProcessCanBeStartedAgain(t *testing.T) {
	spec := shell(t, `echo started; : > "$READY"; exec sleep 60`)
	p := start(t, spec)
	first, done := p.PID(), p.Done()
	p.Kill()
	<-done
	if err := p.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if p.PID() == first || !alive(p.PID()) {
		t.Errorf("process %d after %d", p.PID(), first)
	}
	eventually(t, "its log is that of the latest start alone", func() bool { return p.Tail() == "started" })
}

func TestAPausedProcessStandsStillAndCanBeStopped(t *testing.T) {
	p := start(t, shell(t, `: > "$READY"; exec sleep 60`))
	p.Pause()
	eventually(t, "its state is stopped", func() bool { return state(p.PID()) == "T" })
	p.Resume()
	eventually(t, "its state is sleeping", func() bool { return state(p.PID()) == "S" })
	p.Pause()
	begun := time.Now()
	p.Stop()
	if took := time.Since(begun); took > 5*time.Second {
		t.Errorf("stopping took %s: SIGTERM waited for a Resume", took)
	}
	if alive(p.PID()) {
		t.Error("it still runs")
	}
}

func TestStandardOutputCanHaveAFileOfItsOwn(t *testing.T) {
	spec := shell(t, `echo out; echo err >&2; : > "$READY"; exec sleep 60`)
	spec.Stdout = filepath.Join(spec.Dir, "made", "stdout")
	p := start(t, spec)
	if got, err := os.ReadFile(spec.Stdout); err != nil || string(got) != "out\n" {
		t.Errorf("standard output is %q, %v", got, err)
	}
	if got := p.Tail(); got != "err" {
		t.Errorf("the log is %q", got)
	}
}

func TestAProgramThatIsMissingIsAnError(t *testing.T) {
	spec := shell(t, "")
	spec.Path = filepath.Join(spec.Dir, "nothing")
	if _, err := process.Start(t.Context(), spec); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestOnlyWhatIsAboutTheMachineIsInherited(t *testing.T) {
	t.Setenv("KUBECONFIG", "/somebody/elses")
	t.Setenv("TZ", "UTC")
	p := start(t, shell(t, `echo "<$KUBECONFIG> <$TZ>" >&2; : > "$READY"; exec sleep 60`))
	if got := p.Tail(); got != "<> <UTC>" {
		t.Errorf("its environment is %s", got)
	}
}
