package tools

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"syscall"
	"time"

	"hangar.io/glidepath/internal/devenv/filelock"
)

// Options says where the tools go and who hears about it.
type Options struct {
	Root     string            // the repository; tools go to Root/.tools/bin
	Progress func(line string) // told what is being done and how long it takes; nil is silence
}

// maker makes the tools of one run.
type maker struct {
	root     string
	tmp      string // folder on the file system of .tools, removed at the end
	progress func(string)
}

// Ensure fetches or builds the named tools, or those that the gateway runs on when none is named, unless they are there already as pinned. It may run several times at
// once: one makes a tool, the others wait for it. Its errors are one sentence that says what to do.
func Ensure(ctx context.Context, opts Options, names ...string) error {
	tools, err := choose(names)
	if err != nil {
		return err
	}
	if opts.Progress == nil {
		opts.Progress = func(string) {}
	}
	missing, err := missingOf(opts.Root, tools)
	if err != nil || len(missing) == 0 {
		return err
	}
	if err := supported(runtime.GOOS, runtime.GOARCH); err != nil {
		return err
	}
	lock, err := filelock.Acquire(ctx, filepath.Join(opts.Root, ".tools", "lock"), func() {
		opts.Progress("another run is fetching the tools: waiting for it")
	})
	if err != nil {
		return err
	}
	defer lock.Release()
	if missing, err = missingOf(opts.Root, missing); err != nil { // whoever held the lock may have made them
		return err
	}
	return makeAll(ctx, opts, missing)
}

func makeAll(ctx context.Context, opts Options, tools []tool) error {
	for _, t := range tools {
		m := &maker{root: opts.Root, progress: opts.Progress}
		if err := m.install(ctx, t); err != nil {
			return explain(err, opts.Root)
		}
	}
	return nil
}

// missingOf returns the tools that are not there as they are pinned.
func missingOf(root string, tools []tool) ([]tool, error) {
	var missing []tool
	for _, t := range tools {
		want, err := t.stamp(root)
		if err != nil {
			return nil, err
		}
		have, err := os.ReadFile(stampFile(root, t.name))
		info, statErr := os.Stat(binary(root, t.name))
		if err != nil || statErr != nil || string(have) != want || info.Mode()&0o111 == 0 {
			missing = append(missing, t)
		}
	}
	return missing, nil
}

// install makes the tool aside, checks that it runs, and puts it in place; the stamp comes last, so that an interrupted
// installation is made again.
func (m *maker) install(ctx context.Context, t tool) (err error) {
	want, err := t.stamp(m.root)
	if err != nil {
		return err
	}
	if m.tmp, err = os.MkdirTemp(filepath.Join(m.root, ".tools"), "making-"); err != nil {
		return fmt.Errorf("making room for %s: %w", t.name, err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(m.tmp)) }()
	out := filepath.Join(m.tmp, t.name)
	begun := time.Now()
	if err := t.make(ctx, m, out); err != nil {
		return err
	}
	if err := runs(ctx, t, out); err != nil {
		return err
	}
	if err := put(m.root, t.name, out, want); err != nil {
		return fmt.Errorf("installing %s: %w", t.name, err)
	}
	m.progress(fmt.Sprintf("%s %s is ready (%s)", t.name, t.version, time.Since(begun).Round(100*time.Millisecond)))
	return nil
}

func put(root, name, out, stamp string) error {
	for _, dir := range []string{filepath.Dir(binary(root, name)), filepath.Dir(stampFile(root, name))} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			return err
		}
	}
	if err := os.Remove(stampFile(root, name)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	if err := os.Rename(out, binary(root, name)); err != nil {
		return err
	}
	return os.WriteFile(stampFile(root, name), []byte(stamp), 0o644)
}

func binary(root, name string) string    { return filepath.Join(root, ".tools", "bin", name) }
func stampFile(root, name string) string { return filepath.Join(root, ".tools", "stamps", name) }

func explain(err error, root string) error {
	if errors.Is(err, syscall.ENOSPC) {
		return fmt.Errorf("no space is left on the disk of %s: free about 6 GB there and in Go's caches, and run `make tools` again (%w)", root, err)
	}
	return err
}
