package envoy

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
)

// Validate asks an Envoy, the program at this path, whether it would take the
// configuration in a file. The error holds what Envoy says against it.
func Validate(ctx context.Context, program, file string) error {
	//nolint:gosec // the caller's own choice of program
	cmd := exec.CommandContext(ctx, program, "--mode", "validate", "--disable-hot-restart", "--log-level", "error", "--config-path", file)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("envoy refuses %s (%w): %s", file, err, strings.TrimSpace(string(out)))
	}
	return nil
}
