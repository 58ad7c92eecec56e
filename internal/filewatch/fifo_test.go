//go:build unix

package filewatch

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Nobody writes to the FIFO: a reader that waited for that would follow nothing
// any more, and say nothing.
func TestWhatIsNoRegularFileIsAnErrorAndTheWatchGoesOn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	fifo := filepath.Join(dir, "fifo")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{fifo, dir, os.DevNull} {
		if data, err := ReadFile(name, most); err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("%s: read %q, %v", name, data, err)
		}
	}
	file := filepath.Join(dir, "followed.yaml")
	write(t, file, "one")
	read := watched(t, file)
	if err := os.Rename(fifo, file); err != nil {
		t.Fatal(err)
	}
	wantRead(t, read, "error")
	write(t, file+".new", "two")
	if err := os.Rename(file+".new", file); err != nil {
		t.Fatal(err)
	}
	wantRead(t, read, "two")
}
