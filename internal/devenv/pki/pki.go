// Package pki makes certificate authorities and certificates for development and tests, and lays them out in folders as
// Kubernetes mounts a Secret.
package pki

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"time"
)

const certificateLife = 365 * 24 * time.Hour

// Authority is a certificate authority that lives as long as the parts it signs for.
type Authority struct {
	PEM []byte // its certificate

	cert *x509.Certificate
	key  crypto.Signer
}

// Pair is a certificate with its key, in PEM.
type Pair struct{ Cert, Key []byte }

// NewAuthority makes an authority of this name.
func NewAuthority(name string) (*Authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("making the key of %s: %w", name, err)
	}
	template := certificate(pkix.Name{CommonName: name})
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("making the certificate of %s: %w", name, err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("reading the certificate of %s: %w", name, err)
	}
	return &Authority{cert: cert, key: key, PEM: encode("CERTIFICATE", der)}, nil
}

// Subject says whom a certificate is for.
type Subject struct {
	Name pkix.Name
	// DNS, IPs and URIs are the subject's names. Without any they are those of a server on loopback.
	DNS  []string
	IPs  []net.IP
	URIs []string
	// NotAfter is when the certificate ends; zero is in a year.
	NotAfter time.Time
}

// Loopback is a server or client of this name on this machine.
func Loopback(name string) Subject { return Subject{Name: pkix.Name{CommonName: name}} }

// Issue signs a certificate that is good as a client's and as a server's.
func (a *Authority) Issue(s Subject) (Pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return Pair{}, fmt.Errorf("making the key of %s: %w", s.Name.CommonName, err)
	}
	template := certificate(s.Name)
	template.KeyUsage = x509.KeyUsageDigitalSignature
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	if err := s.names(template); err != nil {
		return Pair{}, err
	}
	if !s.NotAfter.IsZero() {
		template.NotAfter = s.NotAfter
		template.NotBefore = s.NotAfter.Add(-certificateLife)
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return Pair{}, fmt.Errorf("signing the certificate of %s: %w", s.Name.CommonName, err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return Pair{}, fmt.Errorf("encoding the key of %s: %w", s.Name.CommonName, err)
	}
	return Pair{Cert: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", keyDER)}, nil
}

func (s Subject) names(c *x509.Certificate) error {
	if len(s.DNS)+len(s.IPs)+len(s.URIs) == 0 {
		c.DNSNames = []string{"localhost", "kubernetes.default.svc"}
		c.IPAddresses = []net.IP{net.IPv4(127, 0, 0, 1), net.IPv6loopback}
		return nil
	}
	c.DNSNames, c.IPAddresses = s.DNS, s.IPs
	for _, raw := range s.URIs {
		u, err := url.Parse(raw)
		if err != nil {
			return fmt.Errorf("naming %s: %w", s.Name.CommonName, err)
		}
		c.URIs = append(c.URIs, u)
	}
	return nil
}

// Pool holds this authority alone.
func (a *Authority) Pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}

// ClientTLS is the configuration of a client that trusts this authority alone and shows the given certificate.
func (a *Authority) ClientTLS(p Pair) (*tls.Config, error) {
	cert, err := p.TLS()
	if err != nil {
		return nil, err
	}
	return &tls.Config{RootCAs: a.Pool(), Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS13}, nil
}

// TLS is the pair as crypto/tls takes it.
func (p Pair) TLS() (tls.Certificate, error) {
	cert, err := tls.X509KeyPair(p.Cert, p.Key)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("loading a certificate: %w", err)
	}
	return cert, nil
}

// Write stores the pair as <name>.crt and <name>.key and returns both paths.
func (p Pair) Write(dir, name string) (certFile, keyFile string, err error) {
	certFile, keyFile = filepath.Join(dir, name+".crt"), filepath.Join(dir, name+".key")
	if err := os.WriteFile(certFile, p.Cert, 0o600); err != nil {
		return "", "", fmt.Errorf("writing a certificate: %w", err)
	}
	if err := os.WriteFile(keyFile, p.Key, 0o600); err != nil {
		return "", "", fmt.Errorf("writing a key: %w", err)
	}
	return certFile, keyFile, nil
}

func certificate(subject pkix.Name) *x509.Certificate {
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: new(big.Int).SetInt64(now.UnixNano()),
		Subject:      subject,
		NotBefore:    now.Add(-time.Minute),
		NotAfter:     now.Add(certificateLife),
	}
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
