package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/fleet"
)

// here is a gateway of this test's own: another folder and port than those of `make up`.
type here struct {
	dir  string
	port int
}

// program is built once for all tests.
var program string

func TestMain(m *testing.M) { os.Exit(buildAndRun(m)) }

func buildAndRun(m *testing.M) int {
	dir, err := os.MkdirTemp("", "gp-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program = filepath.Join(dir, "glidepath-dev")
	if out, err := exec.Command("go", "build", "-buildvcs=false", "-o", program, ".").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "%v: %s\n", err, out)
		return 1
	}
	return m.Run()
}

func newHere(t *testing.T) here {
	t.Helper()
	port, err := ports.Reserve()
	must(t, err)
	t.Cleanup(port.Release)
	return here{dir: t.ArtifactDir(), port: port.Number}
}

// run runs a command of the program and returns what it prints.
func (h here) run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	args = append(args, "--dir="+h.dir)
	if args[0] == "up" {
		args = append(args, fmt.Sprintf("--port=%d", h.port))
	}
	out, err := exec.CommandContext(t.Context(), program, args...).CombinedOutput()
	t.Logf("%s:\n%s", args[0], out)
	return string(out), err
}

type entry struct {
	Name      string
	PID       int
	Addresses []string
}

func (h here) processes(t *testing.T) map[string]entry {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(h.dir, "processes.json"))
	must(t, err)
	var entries []entry
	must(t, json.Unmarshal(data, &entries))
	found := map[string]entry{}
	for _, e := range entries {
		found[e.Name] = e
	}
	return found
}

// environment reads demo.env the way a program would that knows no shell.
func (h here) environment(t *testing.T) map[string]string {
	t.Helper()
	f, err := os.Open(filepath.Join(h.dir, "demo.env"))
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("the mode of demo.env is %v", info.Mode())
	}
	found := map[string]string{}
	for lines := bufio.NewScanner(f); lines.Scan(); {
		name, value, _ := strings.Cut(lines.Text(), "=")
		found[name] = strings.Trim(value, "'")
	}
	return found
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func runs(pid int) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err == nil && !strings.Contains(string(data), ") Z ")
}

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	deadline := time.After(time.Minute)
	for !ok() {
		select {
		case <-deadline:
			t.Fatalf("never: %s", what)
		case <-ticker.C:
		}
	}
}

// status is the status of the answer to GET with a token, or 0.
func status(t *testing.T, url, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}
	resp, err := client.Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode
}

// TestTheLifeOfAGateway goes through it in order: each step takes seconds, a start of its own would take many.
func TestTheLifeOfAGateway(t *testing.T) {
	h := newHere(t)
	t.Cleanup(func() { // t.Context has ended
		_ = exec.Command(program, "down", "--dir="+h.dir).Run()
	})
	out, err := h.run(t, "up")
	must(t, err)

	t.Run("up prints commands that work", func(t *testing.T) { pasted(t, out) })
	t.Run("demo.env has every variable", func(t *testing.T) { variables(t, h) })
	t.Run("processes.json names what runs", func(t *testing.T) { listed(t, h) })
	t.Run("a second up finds it and takes seconds", func(t *testing.T) { again(t, h) })
	t.Run("what dies is started again", func(t *testing.T) { mended(t, h) })
	t.Run("nothing outlives the supervisor, and up starts over", func(t *testing.T) { startedOver(t, h) })
	t.Run("down leaves nothing", func(t *testing.T) { stopped(t, h) })
}

func pasted(t *testing.T, out string) {
	t.Helper()
	_, commands, ok := strings.Cut(out, "Paste this:")
	commands, _, _ = strings.Cut(commands, "The logs are in")
	if !ok || strings.Count(commands, "curl") < 3 {
		t.Fatalf("it prints no commands:\n%s", out)
	}
	got, err := exec.CommandContext(t.Context(), "/bin/sh", "-ec", commands).CombinedOutput()
	must(t, err)
	for _, want := range []string{
		`"username":"system:serviceaccount:`, `"username":"people:` + fleet.PersonReader + `"`, // of demo.env's ID_TOKEN_PERSON
		`"pipelineRuns":[{`, `"taskRuns":[{`, "403 Forbidden", `"rule":"GP-AUTH`, `"msg":"audit"`,
	} {
		if !strings.Contains(string(got), want) {
			t.Errorf("their output has no %s:\n%.2000s", want, got)
		}
	}
}

func variables(t *testing.T, h here) {
	t.Helper()
	env := h.environment(t)
	names := []string{"GLIDEPATH_URL", "GLIDEPATH_PEOPLE_URL", "KUBECONFIG", "REDIS_URL", "ENVOY_ADMIN", "METRICS_URLS", "BACKEND_URLS", "AUDIT_LOG", "POLICY_FILE", "DENY_LIST_FILE"}
	for _, caller := range fleet.Callers() {
		names = append(names, caller.EnvVar)
	}
	for _, name := range names {
		if env[name] == "" {
			t.Errorf("%s has no value", name)
		}
	}
	if strings.Count(env["ID_TOKEN_PERSON"], ".") != 2 {
		t.Errorf("ID_TOKEN_PERSON is %q, no ID token", env["ID_TOKEN_PERSON"])
	}
	for caller, want := range map[string]int{"TOKEN_READER": 200, "TOKEN_APP_READER": 403, "TOKEN_STRANGER": 403} {
		if got := status(t, env["GLIDEPATH_URL"]+"/v1/live", env[caller]); got != want {
			t.Errorf("%s gets %d for the fleet's live runs, want %d", caller, got, want)
		}
	}
	for _, pair := range strings.Split(env["METRICS_URLS"], ",") {
		if _, url, _ := strings.Cut(pair, "="); status(t, url, "") != 200 {
			t.Errorf("%s is no metrics URL", pair)
		}
	}
}

func listed(t *testing.T, h here) {
	t.Helper()
	found := h.processes(t)
	for _, name := range []string{"supervisor", "etcd", "kube-apiserver", "redis", "livehub", "runs", "authz", "xds", "envoy", "simulator"} {
		if e, ok := found[name]; !ok || !runs(e.PID) {
			t.Errorf("%s is %+v", name, e)
		}
	}
	if url := fmt.Sprintf("http://127.0.0.1:%d", h.port); found["envoy"].Addresses[0] != url {
		t.Errorf("envoy is at %q, want %s", found["envoy"].Addresses, url)
	}
}

func again(t *testing.T, h here) {
	t.Helper()
	before, begun := h.processes(t), time.Now()
	out, err := h.run(t, "up")
	must(t, err)
	if took := time.Since(begun); took > 10*time.Second || !strings.Contains(out, "already running") {
		t.Errorf("after %s it says\n%s", took, out)
	}
	for name, e := range h.processes(t) {
		if before[name].PID != e.PID {
			t.Errorf("%s was started again", name)
		}
	}
}

func mended(t *testing.T, h here) {
	t.Helper()
	env := h.environment(t)
	for _, name := range []string{"envoy", "livehub", "runs", "redis", "kube-apiserver"} {
		before := h.processes(t)[name].PID
		must(t, syscall.Kill(before, syscall.SIGKILL))
		eventually(t, name+" is started again", func() bool { now := h.processes(t)[name].PID; return now != before && runs(now) })
		eventually(t, "the gateway answers", func() bool { return status(t, env["GLIDEPATH_URL"]+"/v1/live", env["TOKEN_READER"]) == 200 })
	}
}

func startedOver(t *testing.T, h here) {
	t.Helper()
	before := h.processes(t)
	must(t, syscall.Kill(before["supervisor"].PID, syscall.SIGKILL))
	for name, e := range before {
		eventually(t, name+" is gone", func() bool { return !runs(e.PID) })
	}
	if out, err := h.run(t, "status"); err == nil || !strings.Contains(out, "no gateway is running") {
		t.Errorf("the status is %q, %v", out, err)
	}
	_, err := h.run(t, "up")
	must(t, err)
	env := h.environment(t)
	if got := status(t, env["GLIDEPATH_URL"]+"/v1/live", env["TOKEN_READER"]); got != 200 {
		t.Errorf("the new gateway answers %d", got)
	}
}

func stopped(t *testing.T, h here) {
	t.Helper()
	before := h.processes(t)
	_, err := h.run(t, "down")
	must(t, err)
	for name, e := range before {
		if runs(e.PID) {
			t.Errorf("%s still runs", name)
		}
	}
	for _, name := range []string{"demo.env", "processes.json", "sockets"} {
		if _, err := os.Stat(filepath.Join(h.dir, name)); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s is still there", name)
		}
	}
	if !ports.Free(h.port) {
		t.Error("the port is still taken")
	}
	_, err = h.run(t, "down") // twice is harmless
	must(t, err)
}

func TestAPortThatIsTakenIsOneSentence(t *testing.T) {
	h := newHere(t)
	// Nobody may look whether the port is free before it is taken: looking takes it for a moment.
	listener, err := net.Listen("tcp", ports.Loopback(h.port))
	must(t, err)
	t.Cleanup(func() { _ = listener.Close() })
	out, err := h.run(t, "up")
	want := fmt.Sprintf("glidepath-dev: port %d is in use: stop what listens there, or choose another one with `make up PORT=%d`\n", h.port, h.port+1)
	if err == nil || out != want {
		t.Errorf("got %q, %v, want %q", out, err, want)
	}
}
