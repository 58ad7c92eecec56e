package server

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"
)

func newStore(t *testing.T) (*Store, string) {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "state")
	s, err := NewStore(dir)
	if err != nil {
		t.Fatal(err)
	}
	return s, dir
}

func TestWhatIsStoredComesBack(t *testing.T) {
	t.Parallel()
	store, dir := newStore(t)
	if _, err := store.Load(); !errors.Is(err, ErrNoSnapshot) {
		t.Errorf("an empty store gives %v", err)
	}
	for _, timeout := range []time.Duration{time.Second, 2 * time.Second} { // the second in the place of the first
		want := snapshot(t, timeout)
		if err := store.Save(want); err != nil {
			t.Fatal(err)
		}
		got, err := store.Load()
		if err != nil {
			t.Fatal(err)
		}
		if got.Version() != want.Version() || !proto.Equal(got.resources.Listeners[0], want.resources.Listeners[0]) ||
			!proto.Equal(got.resources.Routes[0], want.resources.Routes[0]) || len(got.resources.Clusters) != 2 {
			t.Errorf("got %s, want %s", got.Version(), want.Version())
		}
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 1 {
		t.Errorf("the folder holds %v, %v", files, err)
	}
	info, err := files[0].Info()
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the file's mode is %v, %v", info.Mode(), err)
	}
}

func TestAStoredFileThatIsNotWholeIsRefused(t *testing.T) {
	t.Parallel()
	store, dir := newStore(t)
	if err := store.Save(snapshot(t, time.Second)); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, storeFile)
	good, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		content []byte
		want    string
	}{
		"empty":                      {nil, "decoding"},
		"cut off":                    {good[:len(good)/2], "decoding"},
		"changed by hand":            {bytes.Replace(good, []byte("livehub"), []byte("evilhub"), -1), "the content has version"},
		"of another version":         {bytes.Replace(good, []byte(`"version": "`), []byte(`"version": "0`), 1), "the content has version"},
		"with nothing in it":         {[]byte(`{"version":"x"}`), "the content has version"},
		"with a field Envoy has not": {bytes.Replace(good, []byte(`"domains"`), []byte(`"domain"`), 1), "decoding"},
		"larger than it can be":      {make([]byte, maxStored+1), "larger than"},
	} {
		if err := os.WriteFile(file, tt.content, 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := store.Load(); err == nil || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: got %v, want %q", name, err, tt.want)
		}
	}
}

func TestAFailedSaveLeavesTheOldFile(t *testing.T) {
	t.Parallel()
	store, dir := newStore(t)
	want := snapshot(t, time.Second)
	if err := store.Save(want); err != nil {
		t.Fatal(err)
	}
	// A folder in the file's place cannot be renamed over.
	blocked := &Store{dir: t.TempDir()}
	if err := os.Mkdir(filepath.Join(blocked.dir, storeFile), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := blocked.Save(want); err == nil {
		t.Error("saved over a folder")
	}
	if files, err := os.ReadDir(blocked.dir); err != nil || len(files) != 1 {
		t.Errorf("a failed save leaves %v, %v", files, err)
	}
	gone := &Store{dir: filepath.Join(dir, "missing")}
	if err := gone.Save(want); err == nil {
		t.Error("saved into a missing folder")
	}
	if got, err := store.Load(); err != nil || got.Version() != want.Version() {
		t.Errorf("the old file gives %v, %v", got, err)
	}
}
