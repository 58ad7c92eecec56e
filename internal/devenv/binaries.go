package devenv

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"hangar.io/glidepath/internal/devenv/filelock"
)

// buildBinaries builds the gateway's processes and returns the folder they are in. What is up to date is not built again, and
// tests of several packages share it.
func buildBinaries(ctx context.Context, root string, cfg GatewayConfig) (string, error) {
	dir, flags, env, progress := filepath.Join(root, "bin"), []string{"-buildvcs=false"}, os.Environ(), cfg.Progress
	switch {
	case cfg.Static:
		dir, env = filepath.Join(dir, "static"), append(env, "CGO_ENABLED=0")
	case cfg.Race && hasCompiler():
		dir, flags = filepath.Join(dir, "race"), append(flags, "-race")
	}
	lock, err := filelock.Acquire(ctx, filepath.Join(dir, ".lock"), func() { progress("another run is building the gateway: waiting for it") })
	if err != nil {
		return "", err
	}
	defer lock.Release()
	begun := time.Now()
	progress("building the gateway")
	args := append([]string{"build"}, flags...)
	args = append(args, "-o", dir+string(filepath.Separator), "./cmd/authz", "./cmd/livehub", "./cmd/runs", "./cmd/xds")
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir, cmd.Env = root, env
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("building the gateway: %w: %s", err, strings.TrimSpace(string(out)))
	}
	progress(fmt.Sprintf("the gateway is built (%s)", time.Since(begun).Round(100*time.Millisecond)))
	return dir, nil
}

// hasCompiler says whether there is the C compiler that the race detector needs.
func hasCompiler() bool {
	if cc := os.Getenv("CC"); cc != "" {
		return true
	}
	for _, name := range []string{"gcc", "clang"} {
		if _, err := exec.LookPath(name); err == nil {
			return true
		}
	}
	return false
}
