package up

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// sleeper is a process of this test, described as the supervisor would.
func sleeper(t *testing.T, script string) (identity, <-chan struct{}) {
	t.Helper()
	cmd := exec.Command("/bin/sh", "-c", script)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := out.Read(make([]byte, 1)); err != nil { // it is past its traps
		t.Fatal(err)
	}
	id := identify(cmd.Process.Pid)
	reaped := make(chan struct{})
	go func() {
		_ = cmd.Wait() // it is killed
		close(reaped)
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		<-reaped
	})
	return id, reaped
}

func options(t *testing.T) (Options, *bytes.Buffer) {
	t.Helper()
	out := &bytes.Buffer{}
	return Options{Dir: t.TempDir(), Port: 8080, Out: out, Progress: func(string) {}}, out
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

const obedient, deaf = `echo; exec sleep 60`, `trap '' TERM; echo; while :; do sleep 1; done`

func TestOnlyTheProcessThatWasMeantIsEnded(t *testing.T) {
	for name, tc := range map[string]struct {
		script string
		start  string // instead of the real start time
		ended  bool
		killed bool
	}{
		"the right one":                     {script: obedient, ended: true},
		"one that is deaf to SIGTERM":       {script: deaf, ended: true, killed: true},
		"a later one with the same id":      {script: obedient, start: "1"},
		"one whose start nobody wrote down": {script: obedient, start: "-"},
	} {
		t.Run(name, func(t *testing.T) {
			id, reaped := sleeper(t, tc.script)
			switch tc.start {
			case "":
			case "-":
				id.Start = ""
			default:
				id.Start = tc.start
			}
			patience := time.Minute // however slow the machine is
			if tc.killed {
				patience = time.Second
			}
			killed, err := id.end(t.Context(), patience)
			must(t, err)
			if killed != tc.killed {
				t.Errorf("killed: %v, want %v", killed, tc.killed)
			}
			if !tc.ended {
				if syscall.Kill(id.PID, 0) != nil {
					t.Error("another process was ended")
				}
				return
			}
			<-reaped
			if id.running() {
				t.Error("it still runs")
			}
		})
	}
}

func TestFollowHandsOnProgressUntilTheEndIsKnown(t *testing.T) {
	for name, tc := range map[string]struct {
		said  string
		lines string
		fault string
	}{
		"a good start":              {`{"progress":"one"}{"progress":"two"}{"ready":true}`, "one two", ""},
		"a failed start":            {`{"progress":"one"}{"error":"no disk"}`, "one", "no disk"},
		"a supervisor that is gone": {`{"progress":"one"}`, "one", "the supervisor ended while it was starting the gateway: see the.log"},
		"a broken message":          {`{"prog`, "", "listening to the supervisor"},
	} {
		t.Run(name, func(t *testing.T) {
			var lines []string
			err := follow(strings.NewReader(tc.said), func(l string) { lines = append(lines, l) }, "the.log")
			if got := strings.Join(lines, " "); got != tc.lines {
				t.Errorf("progress %q, want %q", got, tc.lines)
			}
			if (err == nil) != (tc.fault == "") || (err != nil && !strings.Contains(err.Error(), tc.fault)) {
				t.Errorf("error %v, want %q", err, tc.fault)
			}
		})
	}
}

func TestAReporterGoesOnWhenNobodyListensAnyMore(t *testing.T) {
	read, written := io.Pipe()
	r := &reporter{pipe: written}
	must(t, read.Close())
	r.progress("one")
	r.progress("two")
	r.close()
	r.close()
}

func TestAnyValueSurvivesTheShell(t *testing.T) {
	for _, value := range []string{"", "plain-1.2_3:/@=,+", "with space", "it's", `"$(rm x)" \ ;`, "a#b", "~"} {
		out, err := exec.Command("/bin/sh", "-c", "X="+quote(value)+`; printf %s "$X"`).Output()
		if err != nil || string(out) != value {
			t.Errorf("%q arrives as %q, %v", value, out, err)
		}
	}
}

func TestAPortThatIsTakenIsOneSentenceThatSaysWhatToDo(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer l.Close()
	opts, _ := options(t)
	addr, ok := l.Addr().(*net.TCPAddr)
	if !ok {
		t.Fatalf("listening on %v", l.Addr())
	}
	opts.Port = addr.Port
	err = Up(t.Context(), opts)
	if err == nil || !strings.Contains(err.Error(), "is in use: stop what listens there, or choose another one with `make up PORT=") {
		t.Errorf("got %v", err)
	}
}

func TestARunningGatewayIsFoundAndLeftAlone(t *testing.T) {
	opts, out := options(t)
	f := folder(opts.Dir)
	id, _ := sleeper(t, obedient)
	must(t, writeJSON(f.state(), state{Supervisor: id, Port: opts.Port, Ready: true}))
	must(t, writeJSON(f.processes(), []entry{{Name: "envoy", PID: 42, Addresses: []string{"http://127.0.0.1:8080"}}}))

	must(t, Up(t.Context(), opts))
	for _, want := range []string{"already running", "envoy", "42", "http://127.0.0.1:8080", "demo.env", "curl"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("it does not say %q:\n%s", want, out)
		}
	}
	out.Reset()
	must(t, Status(opts))
	if !strings.Contains(out.String(), "envoy") {
		t.Errorf("the status is\n%s", out)
	}
	opts.Port++
	if err := Up(t.Context(), opts); err == nil || !strings.Contains(err.Error(), "a gateway runs on port 8080 already: run `make down` first") {
		t.Errorf("on another port: %v", err)
	}
	if !id.running() {
		t.Error("the supervisor was ended")
	}
}

func TestAStartThatIsUnderWayIsWaitedFor(t *testing.T) {
	opts, out := options(t)
	f := folder(opts.Dir)
	id, _ := sleeper(t, obedient)
	must(t, writeJSON(f.state(), state{Supervisor: id, Port: opts.Port}))
	must(t, writeJSON(f.processes(), []entry{}))
	must(t, Status(opts))
	if !strings.Contains(out.String(), "being started") {
		t.Errorf("the status is %q", out)
	}
	synctest.Test(t, func(t *testing.T) {
		done := make(chan error, 1)
		go func() { done <- Up(t.Context(), opts) }()
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("it does not wait: %v", err)
		default:
		}
		must(t, writeJSON(f.state(), state{Supervisor: id, Port: opts.Port, Ready: true}))
		must(t, <-done)
	})
}

func TestAChildThatDoesNotEndDoesNotSaveTheOthers(t *testing.T) {
	stubborn, _ := sleeper(t, deaf)
	child, reaped := sleeper(t, obedient)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // nobody waits for the first one to be killed
	if err := (state{Children: []identity{stubborn, child}}).endChildren(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
	select {
	case <-reaped:
	case <-time.After(30 * time.Second):
		t.Error("the second child still runs")
	}
}

func TestDownEndsTheSupervisorAndWhatItLeft(t *testing.T) {
	opts, out := options(t)
	f := folder(opts.Dir)
	id, _ := sleeper(t, obedient)
	child, _ := sleeper(t, obedient)
	must(t, writeJSON(f.state(), state{Supervisor: id, Children: []identity{child}, Port: opts.Port, Ready: true}))
	must(t, write(f.env(), []byte("TOKEN_READER=x\n")))
	must(t, Down(t.Context(), opts))
	if id.running() || child.running() {
		t.Error("something still runs")
	}
	if _, err := os.Stat(f.env()); !errors.Is(err, os.ErrNotExist) {
		t.Error("the tokens are still there")
	}
	if err := Status(opts); !errors.Is(err, ErrNotRunning) {
		t.Errorf("the status is %v", err)
	}
	out.Reset()
	must(t, Down(t.Context(), opts)) // twice is harmless
	if !strings.Contains(out.String(), "No gateway is running") {
		t.Errorf("the second time it says %q", out)
	}
}

func TestWhatACrashLeftIsCleanedUp(t *testing.T) {
	opts, _ := options(t)
	f := folder(opts.Dir)
	gone, reaped := sleeper(t, obedient)
	_, err := gone.end(t.Context(), time.Minute)
	must(t, err)
	<-reaped
	child, _ := sleeper(t, obedient)
	must(t, writeJSON(f.state(), state{Supervisor: gone, Children: []identity{child}, Ready: true}))
	must(t, os.MkdirAll(filepath.Join(f.gateway(), "kube"), 0o700))
	must(t, os.MkdirAll(f.sockets(), 0o700))
	must(t, f.clean(t.Context()))
	if child.running() {
		t.Error("a process of the crashed gateway still runs")
	}
	left, err := os.ReadDir(opts.Dir)
	if err != nil || len(left) != 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

func TestWhatIsSecretCanBeReadByItsOwnerAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "demo.env")
	must(t, write(path, []byte("A=1\n")))
	must(t, write(path, []byte("A=2\n")))
	info, err := os.Stat(path)
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("its mode is %v", info.Mode())
	}
	if data, err := os.ReadFile(path); err != nil || string(data) != "A=2\n" {
		t.Errorf("it holds %q, %v", data, err)
	}
}

func TestSocketsHaveAShortPathInALongFolder(t *testing.T) {
	for _, f := range []folder{"/home/me/glidepath/.run", folder("/" + strings.Repeat("long/", 30) + ".run")} {
		if path := f.sockets() + "/edge-2/authz-http.sock"; len(path) > 107 {
			t.Errorf("%s has %d bytes", path, len(path))
		}
	}
}
