package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"
)

// reread is how long what was read counts as what the files hold.
const reread = 10 * time.Second

// Files names what one end of a connection has. An empty CA, and an empty Cert
// with an empty Key, mean that there is none.
type Files struct {
	// CA is a PEM bundle of the authorities that the other end is held to.
	CA string
	// Cert and Key are what this end shows.
	Cert, Key string
}

// Check says what is wrong with the names; it reads nothing.
func (f Files) Check() error {
	if (f.Cert == "") != (f.Key == "") {
		return errors.New("a certificate and its key are given together or not at all")
	}
	return nil
}

// Set is what the files held at one moment. It is not changed.
type Set struct {
	// CAs is nil when there is no bundle.
	CAs *x509.CertPool
	// Cert is nil when there is no certificate.
	Cert *tls.Certificate
}

// Follower has what the files hold, and goes over to what they hold later
// without a goroutine of its own: it looks when it is asked, at most every ten
// seconds. What is broken is logged and changes nothing. It is safe for
// concurrent use.
type Follower struct {
	files Files
	what  string

	mu     sync.Mutex
	read   time.Time
	set    *Set
	broken bool
}

// Follow reads the files, which must all be good, and follows them from then
// on. The name says in logs whose they are.
func Follow(what string, files Files) (*Follower, error) {
	now := time.Now()
	set, err := load(files, now)
	if err != nil {
		return nil, err
	}
	return &Follower{files: files, what: what, read: now, set: set}, nil
}

// Current gives what is in force; the same pointer as long as nothing changes.
func (f *Follower) Current() *Set {
	now := time.Now()
	f.mu.Lock()
	defer f.mu.Unlock()
	if now.Sub(f.read) < reread {
		return f.set
	}
	f.read = now
	next, err := load(f.files, now)
	switch {
	case err != nil:
		if !f.broken {
			slog.Error("certificate files cannot be used; what they held before stays in force", "of", f.what, "error", err)
		}
		f.broken = true
		return f.set
	case !next.same(f.set):
		slog.Info("certificate files were renewed", "of", f.what)
		f.set = next
	}
	f.broken = false
	return f.set
}

func load(files Files, now time.Time) (*Set, error) {
	if err := files.Check(); err != nil {
		return nil, err
	}
	set := &Set{}
	if files.CA != "" {
		pool, err := ReadPool(files.CA)
		if err != nil {
			return nil, err
		}
		set.CAs = pool
	}
	if files.Cert != "" {
		pair, err := ReadPair(files.Cert, files.Key, now)
		if err != nil {
			return nil, err
		}
		set.Cert = pair
	}
	return set, nil
}

// same tells whether going over from one set to the other changes nothing. Both
// are of the same files.
func (s *Set) same(o *Set) bool {
	if s.CAs != nil && !s.CAs.Equal(o.CAs) {
		return false
	}
	return s.Cert == nil || slices.EqualFunc(s.Cert.Certificate, o.Cert.Certificate, bytes.Equal)
}
