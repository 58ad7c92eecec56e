package xds

import (
	"context"
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/xds/server"
)

// certificates are files of an authority, and options that name them.
type certificates struct {
	ca  *pki.Authority
	dir string
}

func newCertificates(t *testing.T) *certificates {
	t.Helper()
	ca, err := pki.NewAuthority("edge-ca")
	if err != nil {
		t.Fatal(err)
	}
	return &certificates{ca: ca, dir: t.TempDir()}
}

// pair writes a certificate and its key, and gives their files.
func (c *certificates) pair(t *testing.T, name string, notAfter time.Time) (cert, key string) {
	t.Helper()
	p, err := c.ca.Issue(pki.Subject{Name: pkix.Name{CommonName: name}, DNS: []string{"edge.example"}, NotAfter: notAfter})
	if err != nil {
		t.Fatal(err)
	}
	if cert, key, err = p.Write(c.dir, name); err != nil {
		t.Fatal(err)
	}
	return cert, key
}

func TestACertificateThatCannotBeUsedKeepsXDSFromStarting(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	cert, key := c.pair(t, "good", time.Time{})
	old, oldKey := c.pair(t, "old", time.Now().Add(-time.Hour))
	_, other := c.pair(t, "other", time.Time{})
	for name, tt := range map[string]struct{ cert, key, want string }{
		"one that is missing":      {cert + ".missing", key, "no such file"},
		"a key that is missing":    {cert, key + ".missing", "no such file"},
		"one that has expired":     {old, oldKey, "the certificate expired at"},
		"a key of another":         {cert, other, "holds no PEM private key that belongs to"},
		"a certificate and no key": {cert, "", "one without the other"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := runOptions(t)
			opts.TLSCertFile, opts.TLSKeyFile = tt.cert, tt.key
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			if err := Run(ctx, opts); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), "--tls-cert-file") {
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestEnvoyTakesTheCertificateThatIsRendered(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	opts := renderOptions()
	opts.TLSCertFile, opts.TLSKeyFile = c.pair(t, "edge", time.Time{})
	opts.OTLPEndpoint, opts.OTLPCAFile = "https://collector:4318", filepath.Join(c.dir, "ca.crt")
	if err := os.WriteFile(opts.OTLPCAFile, c.ca.PEM, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := opts.CheckFiles(); err != nil {
		t.Error(err)
	}
	config, err := Render(opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := Validate(t.Context(), config, devtest.Tool(t, "envoy")); err != nil {
		t.Error(err)
	}
	if strings.Contains(string(config), "PRIVATE KEY") {
		t.Error("the key itself is in the configuration")
	}
	if err := os.WriteFile(opts.OTLPCAFile, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := opts.CheckFiles(); err == nil || !strings.Contains(err.Error(), "--otlp-ca-file") {
		t.Errorf("an empty bundle gives %v", err)
	}
}

// What Envoy took before TLS was switched on must not come back with it on,
// whatever is wrong with what should be served.
func TestAListenerWithoutTLSDoesNotComeBackOnceTLSIsOn(t *testing.T) {
	t.Parallel()
	c := newCertificates(t)
	certFile, keyFile := c.pair(t, "edge", time.Time{})
	for name, tt := range map[string]struct{ before, after, starts bool }{
		"switched on":  {false, true, false},
		"on all along": {true, true, true},
		"off":          {false, false, true},
		"switched off": {true, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			opts := runOptions(t)
			opts.Policy = filepath.Join(t.TempDir(), "policy.yaml")
			if err := os.WriteFile(opts.Policy, []byte("version: none\n"), 0o600); err != nil {
				t.Fatal(err)
			}
			tls := func(on bool) {
				opts.TLSCertFile, opts.TLSKeyFile = "", ""
				if on {
					opts.TLSCertFile, opts.TLSKeyFile = certFile, keyFile
				}
			}
			tls(tt.before)
			res, err := Resources(api.Operations(), PolicyFile{}, opts.EdgeOptions)
			if err != nil {
				t.Fatal(err)
			}
			snap, err := server.NewSnapshot(res)
			if err != nil {
				t.Fatal(err)
			}
			store, err := server.NewStore(opts.StateDir)
			if err != nil {
				t.Fatal(err)
			}
			if err := store.Save(snap); err != nil {
				t.Fatal(err)
			}
			tls(tt.after)
			store.Only(opts.usable)
			if _, err := store.Load(); (err == nil) != tt.starts {
				t.Errorf("loading gives %v", err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			cancel()
			if err := Run(ctx, opts); (err == nil) != tt.starts {
				t.Errorf("starting gives %v", err)
			}
		})
	}
}
