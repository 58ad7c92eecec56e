package filelock_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"hangar.io/glidepath/internal/devenv/filelock"
)

func TestALockHasOneHolderAtATime(t *testing.T) {
	path := filepath.Join(t.TempDir(), "made", "lock")
	held, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := filelock.Try(path); !errors.Is(err, filelock.ErrHeld) {
		t.Errorf("a second try: %v, want %v", err, filelock.ErrHeld)
	}
	held.Release()
	held.Release() // twice is harmless
	again, err := filelock.Try(path)
	if err != nil {
		t.Errorf("after the release: %v", err)
	}
	again.Release()
}

func TestAcquireWaitsForTheHolderAndSaysSoOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	waits := 0
	got, err := filelock.Acquire(t.Context(), path, func() { waits++; held.Release() })
	if err != nil {
		t.Fatal(err)
	}
	defer got.Release()
	if waits != 1 {
		t.Errorf("said that it waits %d times, want once", waits)
	}
}

func TestAcquireGivesUpWithItsContext(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	held, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	defer held.Release()
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := filelock.Acquire(ctx, path, cancel); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want %v", err, context.Canceled)
	}
}
