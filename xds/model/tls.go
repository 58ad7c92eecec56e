package model

import (
	"errors"
	"fmt"
	"strings"
)

// ListenerTLS is what the listener shows to callers: files that Envoy itself
// reads, and reads again when their folder changes.
type ListenerTLS struct {
	// CertFile has the certificate, with those that lead up to its authority;
	// KeyFile its key. Both are PEM, by absolute paths in one folder.
	CertFile, KeyFile string
}

// ClusterTLS has connections to a cluster made over TLS.
type ClusterTLS struct {
	// CAFile has the authorities, PEM, of which one must have signed the
	// server's certificate; an absolute path.
	CAFile string
	// ServerName is the name, or the address, that the certificate must have.
	ServerName string
}

func (t *ListenerTLS) validate() error {
	if t == nil {
		return nil
	}
	errs := []error{absolute("listen.tls: the certificate", t.CertFile), absolute("listen.tls: the key", t.KeyFile)}
	if folder(t.CertFile) != folder(t.KeyFile) {
		// One watch sees both change, so that they are read together.
		errs = append(errs, errors.New("listen.tls: the certificate and the key are in different folders"))
	}
	return errors.Join(errs...)
}

func (t *ClusterTLS) validate(what string) error {
	if t == nil {
		return nil
	}
	errs := []error{absolute(what+": the authorities", t.CAFile)}
	if t.ServerName == "" {
		errs = append(errs, fmt.Errorf("%s: the server's name is missing", what))
	}
	return errors.Join(errs...)
}

func absolute(what, path string) error {
	if !strings.HasPrefix(path, "/") || strings.HasSuffix(path, "/") {
		return fmt.Errorf("%s: %q is not the absolute path of a file", what, path)
	}
	return nil
}

func folder(path string) string {
	return path[:strings.LastIndexByte(path, '/')+1]
}
