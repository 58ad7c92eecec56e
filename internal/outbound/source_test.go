package outbound_test

import (
	"crypto/tls"
	"crypto/x509/pkix"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/outbound"
	"hangar.io/glidepath/internal/standin/tunnel"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// away is a name that no resolver knows: only a proxy leads there.
const away = "source.glidepath.invalid"

func authority(t *testing.T) *pki.Authority {
	t.Helper()
	a, err := pki.NewAuthority("source-ca")
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *pki.Authority, names ...string) pki.Pair {
	t.Helper()
	s := pki.Subject{Name: pkix.Name{CommonName: "source"}}
	for _, n := range names {
		if ip := net.ParseIP(n); ip != nil {
			s.IPs = append(s.IPs, ip)
		} else {
			s.DNS = append(s.DNS, n)
		}
	}
	p, err := a.Issue(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// serve starts a source over TLS and gives its address.
func serve(t *testing.T, shown pki.Pair, change func(*tls.Config)) string {
	t.Helper()
	cert, err := shown.TLS()
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		who := "nobody"
		if certs := r.TLS.PeerCertificates; len(certs) > 0 {
			who = certs[0].Subject.CommonName
		}
		_, _ = io.WriteString(w, "hello "+who)
	}))
	s.Config.ErrorLog = nil
	s.TLS = &tls.Config{Certificates: []tls.Certificate{cert}, MinVersion: tls.VersionTLS12}
	if change != nil {
		change(s.TLS)
	}
	s.StartTLS()
	t.Cleanup(s.Close)
	return s.Listener.Addr().String()
}

func write(t *testing.T, data []byte) string {
	t.Helper()
	name := filepath.Join(t.TempDir(), "file.pem")
	if err := os.WriteFile(name, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

func get(t *testing.T, o outbound.Options, p outbound.Proxies, url string) (string, error) {
	t.Helper()
	source, err := outbound.NewSource("the source", o)
	if err != nil {
		t.Fatal(err)
	}
	transport := source.Transport(p, outbound.Bounds{})
	defer transport.CloseIdleConnections()
	return fetch(t, transport, url)
}

func fetch(t *testing.T, transport *outbound.Transport, url string) (string, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: transport, Timeout: 30 * time.Second}).Do(req)
	if err != nil {
		return "", err
	}
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body), nil
}

func TestWhomASourceTrusts(t *testing.T) {
	t.Parallel()
	ca, stranger := authority(t), authority(t)
	here := serve(t, issue(t, ca, "127.0.0.1"), nil)
	elsewhere := serve(t, issue(t, ca, "other.example"), nil)
	old := serve(t, issue(t, ca, "127.0.0.1"), func(c *tls.Config) { c.MinVersion, c.MaxVersion = tls.VersionTLS10, tls.VersionTLS11 })
	for name, tt := range map[string]struct {
		addr, ca string
		want     string // in the error
	}{
		"the private authority is known":            {here, write(t, ca.PEM), ""},
		"two authorities are known":                 {here, write(t, append(stranger.PEM, ca.PEM...)), ""},
		"the system's do not know it":               {here, "", "certificate signed by unknown authority"},
		"another authority does not know it":        {here, write(t, stranger.PEM), "certificate signed by unknown authority"},
		"the certificate is for another name":       {elsewhere, write(t, ca.PEM), "cannot validate certificate for 127.0.0.1"},
		"the server has nothing newer than TLS 1.1": {old, write(t, ca.PEM), "protocol version not supported"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			source, err := outbound.NewSource("the source", outbound.Options{CAFile: tt.ca})
			if err != nil {
				t.Fatal(err)
			}
			dial := func() error {
				c, err := source.DialTLS(t.Context(), "tcp", tt.addr)
				if err != nil {
					return err
				}
				return c.Close()
			}
			call := func() error {
				_, err := get(t, outbound.Options{CAFile: tt.ca}, outbound.Proxies{}, "https://"+tt.addr+"/")
				return err
			}
			for kind, try := range map[string]func() error{"a call": call, "a connection": dial} {
				err := try()
				if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
					t.Errorf("%s: got %v, want %q", kind, err, tt.want)
				}
			}
		})
	}
}

func TestAClientCertificateIsShownToWhoAsksForOne(t *testing.T) {
	t.Parallel()
	ca := authority(t)
	asks := serve(t, issue(t, ca, "127.0.0.1"), func(c *tls.Config) { c.ClientAuth, c.ClientCAs = tls.RequireAndVerifyClientCert, ca.Pool() })
	pair := issue(t, ca, "client")
	o := outbound.Options{CAFile: write(t, ca.PEM), CertFile: write(t, pair.Cert), KeyFile: write(t, pair.Key)}
	if got, err := get(t, o, outbound.Proxies{}, "https://"+asks+"/"); err != nil || got != "hello source" {
		t.Errorf("with a certificate: %q, %v", got, err)
	}
	o.CertFile, o.KeyFile = "", ""
	if _, err := get(t, o, outbound.Proxies{}, "https://"+asks+"/"); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("without a certificate: %v", err)
	}
}

func TestOptionsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, o := range []outbound.Options{{CertFile: "a"}, {KeyFile: "a"}, {CertFile: "a", KeyFile: "a"}} {
		if err := o.Validate(); err == nil || !o.Set() {
			t.Errorf("%+v was taken", o)
		}
	}
	if err := (outbound.Options{CAFile: "a", CertFile: "b", KeyFile: "c"}).Validate(); err != nil {
		t.Error(err)
	}
	if _, err := outbound.NewSource("the source", outbound.Options{CAFile: "/nowhere/ca.crt"}); err == nil ||
		!strings.Contains(err.Error(), "configuring TLS to the source") || !strings.Contains(err.Error(), "/nowhere/ca.crt") {
		t.Errorf("got %v", err)
	}
}

func TestTheWayThroughAProxy(t *testing.T) {
	t.Parallel()
	ca := authority(t)
	addr := serve(t, issue(t, ca, away), nil)
	gone, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	nobody := gone.Addr().String()
	if err := gone.Close(); err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		proxy tunnel.Config
		user  string   // with the password, in front of the proxy's address
		addr  string   // of the proxy, when it is not the one that was started
		want  []string // in the error; nil is an answer
	}{
		"without credentials":              {tunnel.Config{}, "", "", nil},
		"with credentials":                 {tunnel.Config{User: "glide", Password: "hunter2"}, "glide:hunter2@", "", nil},
		"without the credentials it wants": {tunnel.Config{User: "glide", Password: "hunter2"}, "", "", []string{"wants credentials", "407"}},
		"with others than it wants":        {tunnel.Config{User: "glide", Password: "other"}, "glide:hunter2@", "", []string{"wants credentials", "407"}},
		"that refuses":                     {tunnel.Config{Refuse: http.StatusForbidden}, "glide:hunter2@", "", []string{"does not open the way (403)"}},
		"that is away":                     {tunnel.Config{}, "glide:hunter2@", nobody, []string{"proxyconnect", nobody, "connection refused"}},
		"that leads nowhere":               {tunnel.Config{Hosts: map[string]string{away + ":443": nobody}}, "glide:hunter2@", "", []string{"does not open the way (502)"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tt.proxy.Hosts == nil {
				tt.proxy.Hosts = map[string]string{away + ":443": addr}
			}
			proxy, err := tunnel.Start(tt.proxy)
			if err != nil {
				t.Fatal(err)
			}
			defer proxy.Stop()
			at := proxy.Addr
			if tt.addr != "" {
				at = tt.addr
			}
			proxies, err := outbound.NewProxies("http://"+tt.user+at, "", "")
			if err != nil {
				t.Fatal(err)
			}
			got, err := get(t, outbound.Options{CAFile: write(t, ca.PEM)}, proxies, "https://"+away+"/")
			if tt.want == nil {
				if err != nil || got != "hello nobody" || len(proxy.Targets()) != 1 {
					t.Errorf("got %q, %v, by way of %v", got, err, proxy.Targets())
				}
				return
			}
			if err == nil {
				t.Fatalf("got %q", got)
			}
			for _, w := range tt.want {
				if !strings.Contains(err.Error(), w) {
					t.Errorf("%v lacks %q", err, w)
				}
			}
			if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "glide:") {
				t.Errorf("%v shows what the proxy is told", err)
			}
		})
	}
}

func TestAPrivateAuthorityHoldsBehindAProxyToo(t *testing.T) {
	t.Parallel()
	addr := serve(t, issue(t, authority(t), away), nil)
	proxy, err := tunnel.Start(tunnel.Config{Hosts: map[string]string{away + ":443": addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer proxy.Stop()
	proxies, err := outbound.NewProxies("http://"+proxy.Addr, "", "")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := get(t, outbound.Options{CAFile: write(t, authority(t).PEM)}, proxies, "https://"+away+"/"); err == nil || !strings.Contains(err.Error(), "unknown authority") {
		t.Errorf("got %v", err)
	}
}

func TestARenewedAuthorityHoldsWithoutARestart(t *testing.T) {
	before, after := authority(t), authority(t)
	now := time.Now()
	files, err := pki.NewMount(t.TempDir(), map[string][]byte{"ca.crt": before.PEM})
	if err != nil {
		t.Fatal(err)
	}
	// The server stands outside the bubble, so that its waiting does not hold up the bubble's clock.
	url := "https://" + serve(t, issue(t, after, "127.0.0.1"), nil) + "/"
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(now))
		source, err := outbound.NewSource("the source", outbound.Options{CAFile: files.File("ca.crt")})
		if err != nil {
			t.Fatal(err)
		}
		transport := source.Transport(outbound.Proxies{}, outbound.Bounds{})
		defer transport.CloseIdleConnections()
		if _, err := fetch(t, transport, url); err == nil || !strings.Contains(err.Error(), "unknown authority") {
			t.Fatalf("before: %v", err)
		}
		if err := files.Set(map[string][]byte{"ca.crt": after.PEM}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(11 * time.Second)
		if got, err := fetch(t, transport, url); err != nil || got != "hello nobody" {
			t.Errorf("after: %q, %v", got, err)
		}
	})
}
