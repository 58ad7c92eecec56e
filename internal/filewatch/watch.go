// Package filewatch owns how a process follows a file that operators change
// while it runs.
package filewatch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is how long after the first sign of a change a file is read: an editor
// writes in several steps. Further signs do not put it off, or a folder that is
// never quiet would keep the file from being read.
const settle = 20 * time.Millisecond

// reread is how often the file is read without a sign that it changed, for
// file systems that give none.
const reread = 10 * time.Second

// Watcher watches one file. Open it with Watch; Run and Close are each
// called once.
type Watcher struct {
	file string
	most int64
	fs   *fsnotify.Watcher
}

// Watch begins to watch a file, which need not exist yet; its folder must. No
// change after Watch returns is missed by Run. What is read is bounded as in
// ReadFile.
func Watch(file string, most int64) (*Watcher, error) {
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return nil, fmt.Errorf("watching %s: %w", file, err)
	}
	// The folder, not the file: editors and mounted ConfigMaps put another
	// file in its place, and a watch on the old one would see nothing.
	if err := w.Add(filepath.Dir(file)); err != nil {
		return nil, errors.Join(fmt.Errorf("watching %s: %w", file, err), w.Close())
	}
	return &Watcher{file: file, most: most, fs: w}, nil
}

// Close ends the watch.
func (w *Watcher) Close() error { return w.fs.Close() }

// Read gives the file as it is.
func (w *Watcher) Read() ([]byte, error) { return ReadFile(w.file, w.most) }

// ReadFile reads a file, at most one byte more than it may have, so that one
// which is too large can still be told from one that is not. What is no regular
// file is an error.
func ReadFile(file string, most int64) ([]byte, error) {
	// Opening a FIFO would wait for somebody to write to it, and a watch that
	// waits follows nothing any more.
	f, err := os.OpenFile(file, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	data, err := readRegular(f, most)
	if err := errors.Join(err, f.Close()); err != nil {
		return nil, fmt.Errorf("reading a file: %w", err)
	}
	return data, nil
}

func readRegular(f *os.File, most int64) ([]byte, error) {
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", f.Name())
	}
	return io.ReadAll(io.LimitReader(f, most+1))
}

// Run calls changed soon after anything in the file's folder changes, and now
// and then besides, until ctx ends. The caller reads the file
// then, and must bear to find it the same as before.
func (w *Watcher) Run(ctx context.Context, changed func()) error {
	again := time.NewTicker(reread)
	defer again.Stop()
	var settled <-chan time.Time // nil while nothing is to settle
	settles := func() {
		if settled == nil {
			settled = time.After(settle)
		}
	}
	for {
		select {
		case <-ctx.Done():
			return nil
		case _, ok := <-w.fs.Events:
			if !ok {
				return nil
			}
			settles()
		case err, ok := <-w.fs.Errors:
			if !ok {
				return nil
			}
			// Such as an overflow of the kernel's queue: what it lost is in
			// the file.
			if !errors.Is(err, fsnotify.ErrEventOverflow) {
				return fmt.Errorf("watching %s: %w", w.file, err)
			}
			settles()
		case <-settled:
			settled = nil
			changed()
		case <-again.C:
			changed()
		}
	}
}
