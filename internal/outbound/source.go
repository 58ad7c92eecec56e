package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"time"

	"hangar.io/glidepath/internal/certs"
)

// Options are those of one source, to be embedded in a process's configuration
// with a prefix of its own:
//
//	Redis outbound.Options `embed:"" prefix:"redis-cache-" envprefix:"REDIS_CACHE_"`
type Options struct {
	CAFile   string `name:"ca-file" env:"CA_FILE" placeholder:"FILE" help:"Authorities, PEM, of which one must have signed the server's certificate. Read again when it changes. Empty: the system's."`
	CertFile string `name:"cert-file" env:"CERT_FILE" placeholder:"FILE" help:"Client certificate, PEM, for a server that asks for one. Read again when it changes."`
	KeyFile  string `name:"key-file" env:"KEY_FILE" placeholder:"FILE" help:"Key of the client certificate, PEM."`
}

// Set says whether anything is set: a source without TLS takes none of it.
func (o Options) Set() bool { return o != Options{} }

// Validate says what is wrong with the options themselves; it reads no file.
func (o Options) Validate() error {
	if err := o.files().Check(); err != nil {
		return fmt.Errorf("cert-file and key-file: %w", err)
	}
	if o.CertFile != "" && o.CertFile == o.KeyFile {
		return errors.New("cert-file and key-file: the same file")
	}
	return nil
}

func (o Options) files() certs.Files {
	return certs.Files{CA: o.CAFile, Cert: o.CertFile, Key: o.KeyFile}
}

// Bounds of every connection to a source.
const (
	// DialTimeout bounds connecting, DNS included.
	DialTimeout = 5 * time.Second
	// HandshakeTimeout bounds the TLS handshake.
	HandshakeTimeout = 5 * time.Second
	// keepAlive finds out that the other end is gone.
	keepAlive = 30 * time.Second
)

// Source is one server, or a kind of servers, outside the gateway. It is safe
// for concurrent use, and holds nothing that has to be closed.
type Source struct {
	files *certs.Follower
}

// NewSource reads the files of a source, which must be good, and follows their
// renewal. The name says in logs what it is.
func NewSource(name string, o Options) (*Source, error) {
	files, err := certs.Follow(name, o.files())
	if err != nil {
		return nil, fmt.Errorf("configuring TLS to %s: %w", name, err)
	}
	return &Source{files: files}, nil
}

// tlsConfig is how a connection that is opened now is made.
func tlsConfig(set *certs.Set) *tls.Config {
	c := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: set.CAs}
	if set.Cert != nil {
		c.Certificates = []tls.Certificate{*set.Cert}
	}
	return c
}

// DialTLS connects to host:port, without a proxy, and holds the server to its
// host's name. It is for protocols other than HTTP.
func (s *Source) DialTLS(ctx context.Context, network, addr string) (net.Conn, error) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return nil, fmt.Errorf("connecting over TLS: %w", err)
	}
	config := tlsConfig(s.files.Current())
	config.ServerName = host
	ctx, cancel := context.WithTimeout(ctx, DialTimeout+HandshakeTimeout)
	defer cancel()
	return (&tls.Dialer{NetDialer: dialer(), Config: config}).DialContext(ctx, network, addr)
}

func dialer() *net.Dialer { return &net.Dialer{Timeout: DialTimeout, KeepAlive: keepAlive} }
