package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var (
	errNoPython = errors.New("python3 is not installed: install Python 3 with pip (on Debian or Ubuntu: apt-get install python3-pip) and run `make tools` again")
	errNoPip    = errors.New("python3 has no pip: install it (on Debian or Ubuntu: apt-get install python3-pip) and run `make tools` again")
	errNoGo     = errors.New("go is not installed: install Go 1.21 or newer from go.dev/dl and run `make tools` again")
)

// supported says whether the pinned programs exist for a platform.
func supported(goos, arch string) error {
	if goos == "linux" && (arch == "amd64" || arch == "arm64") {
		return nil
	}
	return fmt.Errorf("there are no pinned tools for %s/%s: use Linux on x86_64 or arm64, a virtual machine for instance", goos, arch)
}

func (m *maker) needsPip(ctx context.Context) error {
	if _, err := exec.LookPath("python3"); err != nil {
		return errNoPython
	}
	if err := exec.CommandContext(ctx, "python3", "-m", "pip", "--version").Run(); err != nil {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		return errNoPip
	}
	return nil
}

var (
	toolchainLine = regexp.MustCompile(`(?m)^toolchain (go\S+)$`)
	goVersion     = regexp.MustCompile(`go1\.(\d+)`)
)

// needsGo returns the toolchain that go.mod names, which a local go of 1.21 or newer fetches by itself.
func (m *maker) needsGo(ctx context.Context) (toolchain string, err error) {
	if _, err := exec.LookPath("go"); err != nil {
		return "", errNoGo
	}
	data, err := os.ReadFile(filepath.Join(m.root, "go.mod"))
	if err != nil {
		return "", fmt.Errorf("reading which Go is wanted: %w", err)
	}
	line := toolchainLine.FindSubmatch(data)
	if line == nil {
		return "", errors.New("reading which Go is wanted: go.mod has no toolchain line")
	}
	cmd := exec.CommandContext(ctx, "go", "version")
	cmd.Env = append(os.Environ(), "GOTOOLCHAIN=local") // go.mod's own demand is for later
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("asking go for its version: %w", err)
	}
	if found := goVersion.FindSubmatch(out); found != nil {
		if minor, err := strconv.Atoi(string(found[1])); err == nil && minor < 21 {
			return "", fmt.Errorf("%s is too old to fetch the Go that is wanted here: install Go 1.21 or newer from go.dev/dl and run `make tools` again",
				strings.TrimSpace(string(out)))
		}
	}
	return string(line[1]), nil
}
