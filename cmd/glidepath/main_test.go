package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/internal/devenv/devtest"
)

// run runs a command line as main does and gives what it wrote.
func run(t *testing.T, args ...string) (string, error) {
	t.Helper()
	var out bytes.Buffer
	err := runTo(t, &out, args...)
	return out.String(), err
}

// runTo is run that gives w what is written, as it is.
func runTo(t *testing.T, w io.Writer, args ...string) error {
	t.Helper()
	var c cli
	k, err := kong.New(&c, kong.Writers(w, w), kong.Exit(func(int) { t.Error("it ended the process") }))
	if err != nil {
		t.Fatal(err)
	}
	ctx, err := k.Parse(args)
	if err != nil {
		return err
	}
	return shown(ctx.Run())
}

func policyFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "policy.yaml")
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRenderPrintsWhatEnvoyWouldServe(t *testing.T) {
	t.Parallel()
	out, err := run(t, "xds", "render", "--listen=127.0.0.1:8080", "--backends=livehub=10.0.0.1:1;runs=10.0.0.2:1",
		"--policy="+policyFile(t, "version: 1\noperations: {listLive: {timeout: 1234ms}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"timeout: 1.234s", "address: 10.0.0.1", "name: listLive", "path: /run/glidepath/admin.sock"} {
		if !strings.Contains(out, want) {
			t.Errorf("the output lacks %q", want)
		}
	}
}

func TestCheckAsksEnvoy(t *testing.T) {
	t.Parallel()
	out, err := run(t, "xds", "check", "--envoy="+devtest.Tool(t, "envoy"))
	if err != nil || !strings.Contains(out, "Envoy takes what is made of it") {
		t.Errorf("it says %q, %v", out, err)
	}
	if _, err := run(t, "xds", "check", "--envoy=/bin/false"); err == nil || !strings.Contains(err.Error(), "envoy refuses") {
		t.Errorf("an Envoy that refuses gives %v", err)
	}
}

func TestABadPolicyOrOptionIsAnError(t *testing.T) {
	t.Parallel()
	file := policyFile(t, "version: 1\ndefaults: {timeout: soon}\n")
	for _, command := range []string{"render", "check"} {
		if _, err := run(t, "xds", command, "--policy="+file); err == nil || !strings.Contains(err.Error(), file+":2:21:") {
			t.Errorf("%s gives %v", command, err)
		}
		empty := policyFile(t, "")
		if _, err := run(t, "xds", command, "--policy="+empty); err == nil || !strings.Contains(err.Error(), empty+":1:1: empty") {
			t.Errorf("%s of an empty policy gives %v", command, err)
		}
		if _, err := run(t, "xds", command, "--listen=nowhere"); err == nil || !strings.Contains(err.Error(), "--listen") {
			t.Errorf("%s gives %v", command, err)
		}
	}
}
