package envoy

import (
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
)

// RemoteXDS is an xds that is reached over TCP, with TLS both ways. All of it is
// required. Envoy reads the three files itself, and again when something is
// moved in their folders, as the kubelet does with a mounted Secret.
type RemoteXDS struct {
	// Address is host:port.
	Address string
	// ServerName is the DNS name that the certificate of xds must have.
	ServerName string
	// CAFile has the authorities of xds; CertFile and KeyFile are this Envoy's
	// own, in one folder. All are absolute paths of PEM files.
	CAFile, CertFile, KeyFile string
	// SecretsDir is the folder that holds the files of Secrets; an absolute path.
	SecretsDir string
}

// The files in the folder of secrets. A bootstrap cannot have files watched;
// secrets that come out of a file can.
const (
	identityFile    = "xds-identity.json"
	authoritiesFile = "xds-authorities.json"
)

func (r *RemoteXDS) validate() error {
	var errs []error
	if _, _, err := r.hostPort(); err != nil {
		errs = append(errs, err)
	}
	if r.ServerName == "" {
		errs = append(errs, errors.New("the name of the remote xds is not given"))
	}
	for _, f := range []struct{ name, path string }{
		{"the authorities of xds", r.CAFile}, {"the certificate for xds", r.CertFile}, {"the key for xds", r.KeyFile}, {"the folder of secrets", r.SecretsDir},
	} {
		if !filepath.IsAbs(f.path) {
			errs = append(errs, fmt.Errorf("%s: %q is not an absolute path", f.name, f.path))
		}
	}
	if filepath.Dir(r.CertFile) != filepath.Dir(r.KeyFile) {
		errs = append(errs, errors.New("the certificate and the key for xds are in different folders"))
	}
	return errors.Join(errs...)
}

func (r *RemoteXDS) hostPort() (string, uint16, error) {
	host, port, err := net.SplitHostPort(r.Address)
	if err != nil || host == "" {
		return "", 0, fmt.Errorf("the address of xds: %q is not host:port", r.Address)
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 {
		return "", 0, fmt.Errorf("the address of xds: %q is not host:port", r.Address)
	}
	return host, uint16(n), nil
}

// Host, Port, Discovery, Identity and Authorities are for the template. They
// are of what was validated.

// Host is where xds is.
func (r *RemoteXDS) Host() string { host, _, _ := r.hostPort(); return host }

// Port is where xds listens.
func (r *RemoteXDS) Port() uint16 { _, port, _ := r.hostPort(); return port }

// Discovery is how Envoy finds the host.
func (r *RemoteXDS) Discovery() string {
	if _, err := netip.ParseAddr(strings.Trim(r.Host(), "[]")); err == nil {
		return "STATIC"
	}
	return "STRICT_DNS"
}

// Identity is the file of the secret that this Envoy shows.
func (r *RemoteXDS) Identity() string { return filepath.Join(r.SecretsDir, identityFile) }

// Authorities is the file of the secret with the authorities of xds.
func (r *RemoteXDS) Authorities() string { return filepath.Join(r.SecretsDir, authoritiesFile) }

// Secrets gives the files, by name, that belong into SecretsDir before Envoy
// starts. They name files and hold no key.
func (r *RemoteXDS) Secrets() (map[string][]byte, error) {
	if err := r.validate(); err != nil {
		return nil, fmt.Errorf("writing the secrets of a remote xds: %w", err)
	}
	type object = map[string]any
	file := func(name string) object { return object{"filename": name} }
	out := map[string][]byte{}
	for name, secret := range map[string]object{
		identityFile: {"name": "xds-identity", "tls_certificate": object{
			"certificate_chain": file(r.CertFile), "private_key": file(r.KeyFile),
			"watched_directory": object{"path": filepath.Dir(r.CertFile)},
		}},
		authoritiesFile: {"name": "xds-authorities", "validation_context": object{
			"trusted_ca": file(r.CAFile), "watched_directory": object{"path": filepath.Dir(r.CAFile)},
			"match_typed_subject_alt_names": []object{{"san_type": "DNS", "matcher": object{"exact": r.ServerName}}},
		}},
	} {
		secret["@type"] = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3.Secret"
		raw, err := json.MarshalIndent(object{"resources": []object{secret}}, "", " ")
		if err != nil {
			return nil, fmt.Errorf("writing the secrets of a remote xds: %w", err)
		}
		out[name] = append(raw, '\n')
	}
	return out, nil
}
