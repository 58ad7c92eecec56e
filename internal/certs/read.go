package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
)

// maxFile bounds what is read of a file: several times a system's own bundle of
// authorities.
const maxFile = 2 << 20

// ReadPair gives the certificate, with those that lead up to its authority, and
// the key of two PEM files. A key of another certificate, a certificate that is
// not valid at the given time, and one among those that lead up to the authority
// that cannot be read, are errors.
func ReadPair(certFile, keyFile string, at time.Time) (*tls.Certificate, error) {
	certPEM, err := read(certFile)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %w", err)
	}
	chain, err := certificates(certPEM)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate: %s: %w", certFile, err)
	}
	if err := validAt(chain[0], at); err != nil {
		return nil, fmt.Errorf("reading a certificate: %s: %w", certFile, err)
	}
	keyPEM, err := read(keyFile)
	if err != nil {
		return nil, fmt.Errorf("reading a certificate's key: %w", err)
	}
	pair, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		// The parser's error can quote what it read.
		return nil, fmt.Errorf("reading a certificate's key: %s holds no PEM private key that belongs to %s", keyFile, certFile)
	}
	return &pair, nil
}

// certificates gives those of PEM data, of which there must be one. The decoder
// passes over a block without an end or of broken base64 without a word, so
// what it found is counted against what begins.
func certificates(data []byte) ([]*x509.Certificate, error) {
	var out []*x509.Certificate
	blocks := 0
	for block, rest := pem.Decode(data); block != nil; block, rest = pem.Decode(rest) {
		blocks++
		if block.Type != "CERTIFICATE" {
			continue
		}
		c, err := x509.ParseCertificate(block.Bytes)
		if err != nil {
			return nil, fmt.Errorf("certificate %d: %w", len(out)+1, err)
		}
		out = append(out, c)
	}
	if begun := bytes.Count(data, []byte("-----BEGIN ")); begun != blocks {
		return nil, fmt.Errorf("%d PEM blocks begin in it and %d can be read: it may be cut off", begun, blocks)
	}
	if len(out) == 0 {
		return nil, errors.New("it holds no PEM certificate")
	}
	return out, nil
}

func validAt(c *x509.Certificate, at time.Time) error {
	switch {
	case at.After(c.NotAfter):
		return fmt.Errorf("the certificate expired at %s", c.NotAfter.UTC().Format(time.RFC3339))
	case at.Before(c.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", c.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}

// ReadPool gives the authorities of a PEM file, of which there must be one. A
// certificate in it that cannot be read is an error: half a bundle would refuse
// what the other half was there for.
func ReadPool(file string) (*x509.CertPool, error) {
	data, err := read(file)
	if err != nil {
		return nil, fmt.Errorf("reading authorities: %w", err)
	}
	authorities, err := certificates(data)
	if err != nil {
		return nil, fmt.Errorf("reading authorities: %s: %w", file, err)
	}
	pool := x509.NewCertPool()
	for _, c := range authorities {
		pool.AddCert(c)
	}
	return pool, nil
}

func read(file string) ([]byte, error) {
	f, err := os.Open(file)
	if err != nil {
		return nil, err // names the file
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxFile {
		return nil, fmt.Errorf("%s is larger than %d bytes", file, maxFile)
	}
	return data, nil
}
