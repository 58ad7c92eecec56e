package tools

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// goTool is a program that is built from the module deploy/tools/<name>.
func goTool(name, version, pkg, ldflags, detail string) tool {
	return tool{name: name, version: version, recipe: pkg + " " + ldflags, make: func(ctx context.Context, m *maker, out string) error {
		toolchain, err := m.needsGo(ctx)
		if err != nil {
			return err
		}
		m.progress(fmt.Sprintf("building %s %s, %s", name, version, detail))
		cmd := exec.CommandContext(ctx, "go", "build", "-ldflags", ldflags, "-o", out, pkg)
		cmd.Dir = filepath.Join(m.root, "deploy", "tools", name)
		cmd.Env = append(os.Environ(), "GOTOOLCHAIN="+toolchain, "GOWORK=off", "GOFLAGS=-mod=readonly")
		if err := m.run(ctx, cmd, name); err != nil {
			return fmt.Errorf("building %s failed: if it could not download a module, check the network and GOPROXY, and run `make tools` again: %w", name, err)
		}
		return nil
	}}
}
