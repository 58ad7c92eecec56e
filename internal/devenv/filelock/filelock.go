// Package filelock holds locks between processes. The kernel drops a lock when its holder ends, however that ends.
package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"
)

const askEvery = 50 * time.Millisecond

// ErrHeld says that somebody else holds the lock.
var ErrHeld = errors.New("the lock is held")

// Lock is a held lock.
type Lock struct{ file *os.File }

// Try takes the lock of a file, which is made when missing, or returns ErrHeld at once.
func Try(path string) (*Lock, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("locking: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		_ = f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, ErrHeld
		}
		return nil, fmt.Errorf("locking %s: %w", path, err)
	}
	return &Lock{file: f}, nil
}

// Acquire takes the lock, waiting while somebody else holds it. It calls waiting once if it has to, which may be nil.
func Acquire(ctx context.Context, path string, waiting func()) (*Lock, error) {
	ticker := time.NewTicker(askEvery) // the kernel's own wait cannot be given up
	defer ticker.Stop()
	for {
		l, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return l, err
		}
		if waiting != nil {
			waiting()
			waiting = nil
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for the lock %s: %w", path, ctx.Err())
		case <-ticker.C:
		}
	}
}

// Release gives the lock up. Releasing nil or twice is harmless.
func (l *Lock) Release() {
	if l != nil {
		_ = l.file.Close() // closing is what drops the lock; a second close changes nothing
	}
}
