package filewatch

import (
	"context"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/fsnotify/fsnotify"
)

// most bounds the files of these tests.
const most = 1024

// watched runs a watch on a file and gives what was read at each change.
func watched(t *testing.T, file string) <-chan string {
	t.Helper()
	w, err := Watch(file, most)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	read := make(chan string, 100)
	done := make(chan error, 1)
	go func() {
		done <- w.Run(ctx, func() {
			data, err := w.Read()
			if err != nil {
				data = []byte("error")
			}
			read <- string(data)
		})
	}()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := w.Close(); err != nil {
			t.Error(err)
		}
	})
	return read
}

// wantRead waits until the file was read as want.
func wantRead(t *testing.T, read <-chan string, want string) {
	t.Helper()
	deadline := time.NewTimer(8 * time.Second) // less than reread: the change must have been noticed
	defer deadline.Stop()
	for {
		select {
		case got := <-read:
			if got == want {
				return
			}
		case <-deadline.C:
			t.Fatalf("%q was never read", want)
		}
	}
}

func write(t *testing.T, file, data string) {
	t.Helper()
	if err := os.WriteFile(file, []byte(data), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestEveryWayOfChangingTheFileIsNoticed(t *testing.T) {
	t.Parallel()
	t.Run("written in its place", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "followed.yaml")
		write(t, file, "one")
		read := watched(t, file)
		write(t, file, "two")
		wantRead(t, read, "two")
	})
	t.Run("another file put in its place", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "followed.yaml")
		write(t, file, "one")
		read := watched(t, file)
		for _, data := range []string{"two", "three"} { // twice: the first must not end the watch
			write(t, file+".new", data)
			if err := os.Rename(file+".new", file); err != nil {
				t.Fatal(err)
			}
			wantRead(t, read, data)
		}
	})
	t.Run("made later", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "followed.yaml")
		read := watched(t, file)
		write(t, file, "one")
		wantRead(t, read, "one")
	})
	t.Run("removed", func(t *testing.T) {
		t.Parallel()
		file := filepath.Join(t.TempDir(), "followed.yaml")
		write(t, file, "one")
		read := watched(t, file)
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		wantRead(t, read, "error")
	})
	t.Run("a mounted ConfigMap that changes", func(t *testing.T) {
		t.Parallel()
		// As the kubelet does it: the file is a link through a link to a
		// folder, and that link is exchanged.
		dir := t.TempDir()
		for _, version := range []string{"v1", "v2"} {
			if err := os.Mkdir(filepath.Join(dir, version), 0o700); err != nil {
				t.Fatal(err)
			}
			write(t, filepath.Join(dir, version, "followed.yaml"), version)
		}
		link(t, "v1", filepath.Join(dir, "..data"))
		file := filepath.Join(dir, "followed.yaml")
		link(t, filepath.Join("..data", "followed.yaml"), file)
		read := watched(t, file)
		link(t, "v2", filepath.Join(dir, "..data_tmp"))
		if err := os.Rename(filepath.Join(dir, "..data_tmp"), filepath.Join(dir, "..data")); err != nil {
			t.Fatal(err)
		}
		wantRead(t, read, "v2")
	})
}

func link(t *testing.T, to, name string) {
	t.Helper()
	if err := os.Symlink(to, name); err != nil {
		t.Fatal(err)
	}
}

func TestAFolderThatIsNeverQuietDoesNotKeepTheFileFromBeingRead(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events := make(chan fsnotify.Event)
		w := &Watcher{file: "followed.yaml", fs: &fsnotify.Watcher{Events: events, Errors: make(chan error)}}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		go func() {
			often := time.NewTicker(settle / 4)
			defer often.Stop()
			for {
				select {
				case <-ctx.Done():
					return
				case <-often.C:
				}
				select {
				case <-ctx.Done():
					return
				case events <- fsnotify.Event{Name: "other"}:
				}
			}
		}()
		reads := 0
		if err := w.Run(ctx, func() { reads++ }); err != nil {
			t.Fatal(err)
		}
		if limit := int(time.Second / settle); reads < limit/2 || reads > limit {
			t.Errorf("read %d times in a second", reads)
		}
	})
}

func TestAFolderThatIsNotThereCannotBeWatched(t *testing.T) {
	t.Parallel()
	if _, err := Watch(filepath.Join(t.TempDir(), "missing", "followed.yaml"), most); err == nil {
		t.Error("watched")
	}
}

func TestAFileThatIsTooLargeIsReadNoFurther(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "followed.yaml")
	if err := os.WriteFile(file, make([]byte, 3*most), 0o600); err != nil {
		t.Fatal(err)
	}
	data, err := ReadFile(file, most)
	if err != nil || len(data) != most+1 {
		t.Errorf("%d bytes, %v", len(data), err)
	}
}
