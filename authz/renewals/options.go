package renewals

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"

	"hangar.io/glidepath/internal/certs"
	"hangar.io/glidepath/internal/lifecycle"
)

// Options say where and with what keys streams are renewed, to be embedded in
// the configuration of authz. The zero value is none: then calls get no ticket,
// and backends refuse streams.
type Options struct {
	Listen   string `name:"internal-listen" env:"INTERNAL_LISTEN" placeholder:"ADDRESS" help:"Where backends have their streams renewed; never to be reached from the edge. Empty: no backend serves streams."`
	Keys     string `name:"renewal-keys" env:"RENEWAL_KEY_FILE" placeholder:"FILE" help:"Keys, 32 bytes each as a line of base64, that close the tickets of streams. The first one closes, all open. The same for every authz, for authz alone."`
	CertFile string `name:"internal-cert-file" env:"INTERNAL_CERT_FILE" placeholder:"FILE" help:"Certificate of the internal listener, PEM. Empty: no TLS."`
	KeyFile  string `name:"internal-key-file" env:"INTERNAL_KEY_FILE" placeholder:"FILE" help:"Its key, PEM."`
	ClientCA string `name:"internal-client-ca-file" env:"INTERNAL_CLIENT_CA_FILE" placeholder:"FILE" help:"Authorities, PEM, of which one must have signed a backend's certificate. Empty: none is asked for."`
}

// Enabled says whether streams are renewed at all.
func (o Options) Enabled() bool { return o.Listen != "" }

func (o Options) files() certs.Files {
	return certs.Files{CA: o.ClientCA, Cert: o.CertFile, Key: o.KeyFile}
}

// Validate says what is wrong with the options; it reads no file.
func (o Options) Validate() error {
	var faults []error
	if (o.Listen == "") != (o.Keys == "") {
		faults = append(faults, errors.New("--internal-listen and --renewal-keys: given together or not at all"))
	}
	if o.Listen != "" {
		if _, port, err := net.SplitHostPort(o.Listen); err != nil || port == "" {
			faults = append(faults, fmt.Errorf("--internal-listen: %q is not host:port", o.Listen))
		}
	}
	if err := o.files().Check(); err != nil {
		faults = append(faults, fmt.Errorf("--internal-cert-file and --internal-key-file: %w", err))
	}
	if o.CertFile == "" && o.ClientCA != "" {
		faults = append(faults, errors.New("--internal-client-ca-file: without --internal-cert-file there is no TLS"))
	}
	return errors.Join(faults...)
}

// Open opens the listener at an address, with TLS where there is a certificate.
func (o Options) Open(addr string) (net.Listener, error) {
	if o.CertFile == "" {
		return lifecycle.Listen(addr)
	}
	files, err := certs.Follow("the internal listener", o.files())
	if err != nil {
		return nil, err
	}
	l, err := lifecycle.Listen(addr)
	if err != nil {
		return nil, err
	}
	return tls.NewListener(l, &tls.Config{
		MinVersion: tls.VersionTLS13,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			set := files.Current()
			c := &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{*set.Cert}}
			if set.CAs != nil {
				c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, set.CAs
			}
			return c, nil
		},
	}), nil
}
