package xds

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"hangar.io/glidepath/envoy"
)

// ErrNoEnvoy says that there is no Envoy to ask.
var ErrNoEnvoy = errors.New("envoy was not found")

// Validate asks an Envoy whether it would take a configuration. An empty
// binary is the one in PATH, else the one that `make tools` fetched; without
// either the error is ErrNoEnvoy.
func Validate(ctx context.Context, config []byte, binary string) (err error) {
	if binary, err = findEnvoy(binary); err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "glidepath-check")
	if err != nil {
		return fmt.Errorf("asking Envoy: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	file := filepath.Join(dir, "envoy.yaml")
	if err := os.WriteFile(file, config, 0o600); err != nil {
		return fmt.Errorf("asking Envoy: %w", err)
	}
	return envoy.Validate(ctx, binary, file)
}

func findEnvoy(binary string) (string, error) {
	if binary != "" {
		return binary, nil
	}
	for _, candidate := range []string{"envoy", filepath.Join(".tools", "bin", "envoy")} {
		if path, err := exec.LookPath(candidate); err == nil {
			return path, nil
		}
	}
	return "", ErrNoEnvoy
}
