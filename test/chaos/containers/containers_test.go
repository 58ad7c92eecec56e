package containers_test

import (
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/test/chaos/containers"
)

// open connects to Docker. Where there is none the test is skipped, but not in CI.
func open(t *testing.T) *containers.Docker {
	t.Helper()
	return opened(t, containers.Open)
}

func opened(t *testing.T, by func(context.Context) (*containers.Docker, error)) *containers.Docker {
	t.Helper()
	d, err := by(t.Context())
	if errors.Is(err, containers.ErrNoDaemon) && os.Getenv("CI") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func build(t *testing.T, d *containers.Docker, name, program string) string {
	t.Helper()
	ref, err := d.Build(t.Context(), containers.Image{Name: name, Program: program})
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func network(t *testing.T, d *containers.Docker) *containers.Network {
	t.Helper()
	n, err := d.Network(t.Context(), "containers-test")
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func run(t *testing.T, d *containers.Docker, spec containers.Spec) *containers.Container {
	t.Helper()
	c, err := d.Run(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// pings asks a Redis whether it is there.
func pings(ctx context.Context, addr string) bool {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var dialer net.Dialer
	c, err := dialer.DialContext(ctx, "tcp", addr)
	if err != nil {
		return false
	}
	defer c.Close()
	deadline, _ := ctx.Deadline()
	if err := c.SetDeadline(deadline); err != nil {
		return false
	}
	if _, err := c.Write([]byte("PING\r\n")); err != nil {
		return false
	}
	answer := make([]byte, 5)
	n, err := c.Read(answer)
	return err == nil && string(answer[:n]) == "+PONG"
}

func TestWhatIsDoneToAContainerShowsAndIsUndone(t *testing.T) {
	d := open(t)
	ref := build(t, d, "redis-server", devtest.Tool(t, "redis-server"))
	c := run(t, d, containers.Spec{
		Name: "redis", Image: ref, Network: network(t, d), Args: []string{"/redis.conf"},
		Files: map[string]string{"/redis.conf": "protected-mode no\nsave \"\"\n"},
	})
	addr := net.JoinHostPort(c.Addr.String(), "6379")
	await := func(what string, answers bool) {
		t.Helper()
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for end := time.Now().Add(30 * time.Second); pings(t.Context(), addr) != answers; <-tick.C {
			if time.Now().After(end) {
				t.Fatalf("%s: it answers: %v; its log: %s", what, !answers, c.Logs(t.Context()))
			}
		}
	}
	await("started", true)
	for _, step := range []struct {
		name     string
		do, undo func(context.Context) error
	}{
		{"killed", c.Kill, c.Start},
		{"paused", c.Pause, c.Resume},
		{"cut off", c.Cut, c.Join},
	} {
		if err := step.do(t.Context()); err != nil {
			t.Fatal(err)
		}
		await(step.name, false)
		if err := step.undo(t.Context()); err != nil {
			t.Fatal(err)
		}
		await("no longer "+step.name, true)
	}
}

func TestAnImageHoldsTheProgramAndWhatItLoadsAlone(t *testing.T) {
	d := open(t)
	for name, tc := range map[string]struct {
		program string
		alone   bool
	}{
		"a static program":  {static(t), true},
		"a dynamic program": {devtest.Tool(t, "redis-server"), false},
	} {
		t.Run(name, func(t *testing.T) {
			c := run(t, d, containers.Spec{Name: "files-" + strings.Fields(name)[1], Image: build(t, d, "program", tc.program)})
			files, err := c.Files(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(files, "/program") || (len(files) == 1) != tc.alone {
				t.Errorf("it holds %v", files)
			}
		})
	}
}

func TestWhatADeadRunLeftIsRemoved(t *testing.T) {
	d := opened(t, containers.OpenOther)
	ref := build(t, d, "program", static(t))
	abandoned, err := d.As(dead(t)).Run(t.Context(), containers.Spec{Name: "abandoned", Image: ref})
	if err != nil {
		t.Fatal(err)
	}
	mine := run(t, d, containers.Spec{Name: "mine", Image: ref})
	opened(t, containers.OpenOther)
	if _, err := abandoned.Files(t.Context()); err == nil {
		t.Error("what was abandoned is still there")
	}
	if _, err := mine.Files(t.Context()); err != nil {
		t.Errorf("what is in use was taken: %v", err)
	}
	if err := abandoned.Remove(t.Context()); err != nil {
		t.Errorf("what is gone cannot be removed: %v", err)
	}
}

func TestWhoHasEnded(t *testing.T) {
	me, err := containers.OwnerOf(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	gone := dead(t)
	boot, space, start := me.Changed()
	goneBoot, goneSpace, _ := gone.Changed()
	for name, tc := range map[string]struct {
		owner containers.Owner
		want  bool
	}{
		"this process":                          {me, false},
		"a process that is no more":             {gone, true},
		"one whose id this process has now":     {start, true},
		"one of another boot with this id":      {boot, false},
		"one of other process ids with this id": {space, false},
		"one of another boot":                   {goneBoot, false},
		"one of other process ids":              {goneSpace, false},
		"one that says nothing":                 {containers.Owner{}, false},
	} {
		if got := tc.owner.Ended(); got != tc.want {
			t.Errorf("%s: ended: %v", name, got)
		}
	}
}

func TestTheNetworkOfThisMachineCannotBeLeft(t *testing.T) {
	var c containers.Container
	if c.Cut(t.Context()) == nil || c.Join(t.Context()) == nil {
		t.Error("it was left")
	}
}

// dead gives a process that has ended.
func dead(t *testing.T) containers.Owner {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "cat") // waits for its input
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	o, err := containers.OwnerOf(cmd.Process.Pid)
	if err := errors.Join(err, in.Close(), cmd.Wait()); err != nil {
		t.Fatal(err)
	}
	return o
}

// static builds a program that needs no library.
func static(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	source, program := filepath.Join(dir, "main.go"), filepath.Join(dir, "program")
	if err := os.WriteFile(source, []byte("package main\n\nfunc main() { select {} }\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "go", "build", "-o", program, source)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return program
}
