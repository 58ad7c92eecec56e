package certs_test

import (
	"crypto/x509/pkix"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/certs"
	"hangar.io/glidepath/internal/devenv/pki"
)

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("test-ca")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *pki.Authority, s pki.Subject) pki.Pair {
	t.Helper()
	p, err := a.Issue(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func file(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func TestAPairIsOneOnlyWhenItCanBeUsed(t *testing.T) {
	t.Parallel()
	ca := authority(t)
	good, other := issue(t, ca, pki.Loopback("a")), issue(t, ca, pki.Loopback("b"))
	expired := issue(t, ca, pki.Subject{Name: pkix.Name{CommonName: "old"}, NotAfter: time.Now().Add(-time.Hour)})
	for name, tt := range map[string]struct {
		cert, key []byte
		at        time.Time
		want      string
	}{
		"a pair":                                {good.Cert, good.Key, time.Now(), ""},
		"a pair with the authority behind it":   {append(good.Cert, ca.PEM...), good.Key, time.Now(), ""},
		"the key of another":                    {good.Cert, other.Key, time.Now(), "holds no PEM private key that belongs to"},
		"the authority before the certificate":  {append(ca.PEM, good.Cert...), good.Key, time.Now(), "holds no PEM private key that belongs to"},
		"no key":                                {good.Cert, nil, time.Now(), "holds no PEM private key that belongs to"},
		"a key where the certificate should be": {good.Key, good.Key, time.Now(), "it holds no PEM certificate"},
		"nothing":                               {nil, nil, time.Now(), "it holds no PEM certificate"},
		"half a certificate":                    {good.Cert[:200], good.Key, time.Now(), "it may be cut off"},
		"half an authority behind it":           {append(good.Cert, ca.PEM[:200]...), good.Key, time.Now(), "it may be cut off"},
		"one that has expired":                  {expired.Cert, expired.Key, time.Now(), "the certificate expired at "},
		"one that is not valid yet":             {good.Cert, good.Key, time.Now().Add(-time.Hour), "the certificate is not valid before "},
		"more than a file may have":             {append(good.Cert, make([]byte, 2<<20)...), good.Key, time.Now(), "is larger than"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			certFile, keyFile := file(t, tt.cert), file(t, tt.key)
			pair, err := certs.ReadPair(certFile, keyFile, tt.at)
			if tt.want == "" {
				if err != nil || pair.Leaf == nil {
					t.Errorf("got %v", err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), certFile) {
				t.Errorf("got %v, want %q and the file's name", err, tt.want)
			}
		})
	}
	t.Run("a file that is not there", func(t *testing.T) {
		t.Parallel()
		for _, missing := range [][2]string{{"/nowhere/tls.crt", file(t, good.Key)}, {file(t, good.Cert), "/nowhere/tls.key"}} {
			if _, err := certs.ReadPair(missing[0], missing[1], time.Now()); err == nil || !strings.Contains(err.Error(), "/nowhere/tls.") {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestABundleOfAuthoritiesIsTakenWholeOrNotAtAll(t *testing.T) {
	t.Parallel()
	a, b := authority(t), authority(t)
	for name, tt := range map[string]struct {
		data string
		want string
	}{
		"one":                       {string(a.PEM), ""},
		"two with words between":    {string(a.PEM) + "# the old one\n" + string(b.PEM), ""},
		"none":                      {"# nothing\n", "it holds no PEM certificate"},
		"one that cannot be read":   {string(a.PEM) + "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "certificate 2: "},
		"one and half another":      {string(a.PEM) + string(b.PEM[:200]), "it may be cut off"},
		"half one and another":      {string(a.PEM[:200]) + "\n" + string(b.PEM), "it may be cut off"},
		"one without its last line": {string(a.PEM) + strings.TrimSuffix(string(b.PEM), "-----END CERTIFICATE-----\n"), "it may be cut off"},
		"one of broken base64":      {string(a.PEM) + "-----BEGIN CERTIFICATE-----\n!*!*\n-----END CERTIFICATE-----\n", "it may be cut off"},
		"two with no line between":  {strings.TrimSpace(string(a.PEM)) + string(b.PEM), "it may be cut off"},
		"one and a first line cut":  {string(a.PEM) + "-----BEGIN CERTIF", "it may be cut off"},
		"words behind the last":     {string(a.PEM) + "anything \x00\xff that begins no block", ""},
		"a key and no certificate":  {"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", "it holds no PEM certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool, err := certs.ReadPool(file(t, []byte(tt.data)))
			switch {
			case tt.want == "" && (err != nil || pool == nil):
				t.Errorf("got %v", err)
			case tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)):
				t.Errorf("got %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRenewedFilesComeIntoForceAndBrokenOnesDoNot(t *testing.T) {
	ca, next := authority(t), authority(t)
	first, second := issue(t, ca, pki.Loopback("first")), issue(t, ca, pki.Loopback("second"))
	content := func(ca []byte, p pki.Pair) map[string][]byte {
		return map[string][]byte{"ca.crt": ca, "tls.crt": p.Cert, "tls.key": p.Key}
	}
	dir, real := t.TempDir(), time.Now()
	synctest.Test(t, func(t *testing.T) {
		// The bubble's clock begins in the year 2000, when the certificates are not valid yet.
		time.Sleep(time.Until(real))
		mount, err := pki.NewMount(dir, content(ca.PEM, first))
		if err != nil {
			t.Fatal(err)
		}
		f, err := certs.Follow("test", certs.Files{CA: mount.File("ca.crt"), Cert: mount.File("tls.crt"), Key: mount.File("tls.key")})
		if err != nil {
			t.Fatal(err)
		}
		before := f.Current()
		for _, step := range []struct {
			what    string
			files   map[string][]byte
			changes bool
		}{
			{"the same again", content(ca.PEM, first), false},
			{"a key of another certificate", content(ca.PEM, pki.Pair{Cert: second.Cert, Key: first.Key}), false},
			{"no authorities", content(nil, second), false},
			{"another certificate", content(ca.PEM, second), true},
			{"another authority", content(next.PEM, second), true},
			{"nothing at all", nil, false},
			{"what there was before that", content(next.PEM, second), false},
		} {
			if err := mount.Set(step.files); err != nil {
				t.Fatal(err)
			}
			if f.Current() != before {
				t.Errorf("%s: read again at once", step.what)
			}
			time.Sleep(11 * time.Second)
			after := f.Current()
			if (after != before) != step.changes {
				t.Errorf("%s: changed is %t", step.what, after != before)
			}
			before = after
		}
	})
}

func TestHalfAPairIsAFaultOfTheSettings(t *testing.T) {
	t.Parallel()
	for _, f := range []certs.Files{{Cert: "a"}, {Key: "b"}} {
		if err := f.Check(); err == nil {
			t.Errorf("%+v was taken", f)
		}
	}
	for _, f := range []certs.Files{{}, {CA: "a"}, {Cert: "a", Key: "b"}} {
		if err := f.Check(); err != nil {
			t.Errorf("%+v: %v", f, err)
		}
	}
}
