package xds

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"

	"hangar.io/glidepath/internal/certs"
)

// RemoteOptions say how Envoys that are not in xds's own pod get their
// configuration: over TCP, with TLS both ways. The tags are those of kong.
type RemoteOptions struct {
	Listen   string   `name:"xds-listen" env:"XDS_LISTEN" placeholder:"ADDRESS" help:"Address where Envoys of other pods get their configuration, over TLS with client certificates. Empty: the Unix socket alone."`
	CertFile string   `name:"xds-cert-file" env:"XDS_CERT_FILE" placeholder:"FILE" help:"Certificate that xds shows to them, PEM. Read again when it changes."`
	KeyFile  string   `name:"xds-key-file" env:"XDS_KEY_FILE" placeholder:"FILE" help:"Key of that certificate, PEM."`
	CAFile   string   `name:"xds-client-ca-file" env:"XDS_CLIENT_CA_FILE" placeholder:"FILE" help:"Authorities, PEM, of which one must have signed an Envoy's certificate. Read again when it changes."`
	Clients  []string `name:"xds-clients" env:"XDS_CLIENTS" placeholder:"NAME" help:"Names of which an Envoy's certificate must have one: DNS names or URIs (spiffe://...)."`
}

func (o RemoteOptions) validate() error {
	if o.Listen == "" {
		if o.CertFile != "" || o.KeyFile != "" || o.CAFile != "" || len(o.Clients) > 0 {
			return errors.New("--xds-listen: missing, and nothing else about Envoys of other pods is of use without")
		}
		return nil
	}
	var errs []error
	if _, err := parseAddress("--xds-listen", o.Listen); err != nil {
		errs = append(errs, err)
	}
	for _, f := range []struct{ flag, value string }{
		{"--xds-cert-file", o.CertFile}, {"--xds-key-file", o.KeyFile}, {"--xds-client-ca-file", o.CAFile},
	} {
		if f.value == "" {
			errs = append(errs, fmt.Errorf("%s: missing: nothing is served over TCP without certificates", f.flag))
		}
	}
	// An authority signs for more than Envoys.
	if len(o.Clients) == 0 || slices.Contains(o.Clients, "") {
		errs = append(errs, errors.New("--xds-clients: missing or empty: which Envoys may ask must be said"))
	}
	return errors.Join(errs...)
}

// tlsConfig is nil when no Envoys of other pods are served. The files must be
// good.
func (o RemoteOptions) tlsConfig() (*tls.Config, error) {
	if o.Listen == "" {
		return nil, nil
	}
	files, err := certs.Follow("xds, for Envoys of other pods", certs.Files{CA: o.CAFile, Cert: o.CertFile, Key: o.KeyFile})
	if err != nil {
		return nil, fmt.Errorf("serving Envoys of other pods: %w", err)
	}
	return mutualTLS(files, o.Clients), nil
}

// mutualTLS takes a client that an authority of the files signed for one of the
// names, by what the files hold when it connects.
func mutualTLS(files *certs.Follower, clients []string) *tls.Config {
	base := &tls.Config{
		MinVersion: tls.VersionTLS13,
		NextProtos: []string{"h2"},
		ClientAuth: tls.RequireAndVerifyClientCert,
		// Without tickets every connection is held against the files of now.
		SessionTicketsDisabled: true,
		VerifyConnection: func(state tls.ConnectionState) error {
			return oneOf(state.PeerCertificates[0], clients)
		},
	}
	config := base.Clone()
	config.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) {
		set := files.Current()
		c := base.Clone()
		c.Certificates, c.ClientCAs = []tls.Certificate{*set.Cert}, set.CAs
		return c, nil
	}
	return config
}

func oneOf(c *x509.Certificate, clients []string) error {
	names := slices.Clone(c.DNSNames)
	for _, u := range c.URIs {
		names = append(names, u.String())
	}
	for _, name := range names {
		if slices.Contains(clients, name) {
			return nil
		}
	}
	return fmt.Errorf("no Envoy of this edge has the names %q", names)
}
