// Package ports hands out TCP ports on loopback to programs that bind them later and may bind them again after a restart.
package ports

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"strconv"

	"hangar.io/glidepath/internal/devenv/filelock"
)

// The range lies below the kernel's ephemeral ports, so that no outgoing connection takes a port between its reservation
// and its use, and outside the default range of Kubernetes node ports.
const (
	first = 20000
	count = 9000
	tries = 200
)

// Port is a reserved port. It stays reserved while this program runs, or until Release.
type Port struct {
	Number int
	lock   *filelock.Lock
}

// Reserve finds a port that nothing listens on. Asking the kernel for a free port and closing it again would race with
// everybody else who does the same; here the port's lock file keeps other users of this package away, in this process and in
// others, and the kernel drops the lock when the process ends however it ends.
func Reserve() (*Port, error) {
	dir := filepath.Join(os.TempDir(), "glidepath-ports-"+strconv.Itoa(os.Getuid()))
	for range tries {
		p, err := try(dir, first+rand.IntN(count))
		if err != nil {
			return nil, fmt.Errorf("reserving a port: %w", err)
		}
		if p != nil {
			return p, nil
		}
	}
	return nil, fmt.Errorf("reserving a port: none of %d tried between %d and %d is free", tries, first, first+count)
}

// Addr is the port on loopback, as host:port.
func (p *Port) Addr() string { return Loopback(p.Number) }

// Release lets others have the port. Releasing nil or twice is harmless.
func (p *Port) Release() {
	if p != nil {
		p.lock.Release()
	}
}

// Loopback is the address of a port on this machine alone.
func Loopback(number int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(number)) }

// Free says whether nothing listens on the port, on loopback or on all addresses.
func Free(number int) bool {
	for _, host := range []string{"127.0.0.1", ""} {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(number)))
		if err != nil {
			return false
		}
		_ = l.Close()
	}
	return true
}

// try returns nil when the port is taken.
func try(dir string, number int) (*Port, error) {
	lock, err := filelock.Try(filepath.Join(dir, strconv.Itoa(number)))
	if errors.Is(err, filelock.ErrHeld) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if !Free(number) {
		lock.Release()
		return nil, nil
	}
	return &Port{Number: number, lock: lock}, nil
}
