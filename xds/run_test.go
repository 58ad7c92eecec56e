package xds

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/xds/server"
)

func runOptions(t *testing.T) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{
		EdgeOptions: options(), Socket: filepath.Join(dir, "x.sock"), StateDir: filepath.Join(dir, "state"),
		MetricsListen: "127.0.0.1:0", ProbeListen: "127.0.0.1:0",
	}
	return o
}

func TestOptionsOfTheProcessAreCheckedTogether(t *testing.T) {
	t.Parallel()
	err := Options{EdgeOptions: EdgeOptions{Listen: "x"}, Socket: "x.sock"}.Validate()
	for _, want := range []string{"--listen:", "--socket:", "--state-dir: missing", "--authz-socket:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q in it", err, want)
		}
	}
	if err := runOptions(t).Validate(); err != nil {
		t.Error(err)
	}
}

func TestWhatKeepsTheProcessFromStarting(t *testing.T) {
	t.Parallel()
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = taken.Close() }) // after the parallel tests below
	for name, tt := range map[string]struct {
		change func(*Options)
		want   string
	}{
		"options that are none":        {func(o *Options) { o.Listen = "" }, "--listen"},
		"a port in use":                {func(o *Options) { o.MetricsListen = taken.Addr().String() }, "address already in use"},
		"a policy that is not there":   {func(o *Options) { o.Policy = filepath.Join(o.StateDir, "..", "policy.yaml") }, "no such file"},
		"a policy in no folder":        {func(o *Options) { o.Policy = "/nowhere/policy.yaml" }, "watching /nowhere/policy.yaml"},
		"a folder that cannot be made": {func(o *Options) { o.StateDir = "/dev/null/state" }, "preparing the folder"},
		"a socket's path of 100 bytes": {func(o *Options) { o.Socket = "/" + strings.Repeat("x", 99) }, "--socket: a path of 100 bytes"},
		"a socket that cannot be made": {func(o *Options) { o.Socket = "/nowhere/x.sock" }, "listening on /nowhere/x.sock"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := runOptions(t)
			tt.change(&opts)
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := Run(ctx, opts); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestAProcessThatIsToldToEndEndsWithoutAnError(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, runOptions(t)); err != nil {
		t.Error(err)
	}
}

func TestADamagedStoreDoesNotKeepAGoodConfigurationFromStarting(t *testing.T) {
	t.Parallel()
	opts := runOptions(t)
	store, err := server.NewStore(opts.StateDir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Load(); !errors.Is(err, server.ErrNoSnapshot) {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(opts.StateDir, "last-good.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := Run(ctx, opts); err != nil {
		t.Error(err)
	}
}
