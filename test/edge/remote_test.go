package edge

import (
	"context"
	"crypto/tls"
	"errors"
	"maps"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"hangar.io/glidepath/envoy"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/xds"
)

const (
	xdsName   = "xds.glidepath.example"
	envoyName = "spiffe://glidepath.example/edge"
)

// ends are the two ends of the way to a remote xds, as Secrets.
type ends struct{ xds, envoy *pki.Mount }

func authorityFor(t *testing.T, name string) *pki.Authority {
	t.Helper()
	ca, err := pki.NewAuthority(name)
	if err != nil {
		t.Fatal(err)
	}
	return ca
}

// endOf is the Secret of one end: its own certificate and whom it trusts.
func endOf(t *testing.T, ca *pki.Authority, s pki.Subject, trusted *pki.Authority) map[string][]byte {
	t.Helper()
	p, err := ca.Issue(s)
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"tls.crt": p.Cert, "tls.key": p.Key, "ca.crt": trusted.PEM}
}

func mount(t *testing.T, files map[string][]byte) *pki.Mount {
	t.Helper()
	m, err := pki.NewMount(t.TempDir(), files)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func xdsEnd(t *testing.T, ca *pki.Authority) map[string][]byte {
	t.Helper()
	return endOf(t, ca, pki.Subject{DNS: []string{xdsName}}, ca)
}

func envoyEnd(t *testing.T, ca *pki.Authority) map[string][]byte {
	t.Helper()
	return endOf(t, ca, pki.Subject{URIs: []string{envoyName}}, ca)
}

// startRemote starts an edge whose xds is on TCP too. Its own Envoy is on the
// Unix socket.
func startRemote(t *testing.T, m *pki.Mount) *edge {
	t.Helper()
	return start(t, setup{options: func(o *xds.Options) {
		o.Remote = xds.RemoteOptions{
			Listen: port(t), CertFile: m.File("tls.crt"), KeyFile: m.File("tls.key"), CAFile: m.File("ca.crt"), Clients: []string{"other.example", envoyName},
		}
	}})
}

// remoteBootstrap is that of an Envoy whose xds is elsewhere.
func (e *edge) remoteBootstrap(t *testing.T, m *pki.Mount) envoy.Bootstrap {
	t.Helper()
	secrets := t.TempDir()
	b := envoy.Bootstrap{AdminSocket: filepath.Join(shortDir(t), "admin.sock"), RemoteXDS: &envoy.RemoteXDS{
		Address: e.options.Remote.Listen, ServerName: xdsName, SecretsDir: secrets,
		CAFile: m.File("ca.crt"), CertFile: m.File("tls.crt"), KeyFile: m.File("tls.key"),
	}}
	files, err := b.RemoteXDS.Secrets()
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if strings.Contains(string(data), "PRIVATE KEY") {
			t.Errorf("%s holds a key", name)
		}
		if err := os.WriteFile(filepath.Join(secrets, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return b
}

func TestAnEnvoyElsewhereGetsItsConfigurationOverMutualTLS(t *testing.T) {
	t.Parallel()
	first, second, third := authorityFor(t, "first"), authorityFor(t, "second"), authorityFor(t, "third")
	m := ends{mount(t, xdsEnd(t, first)), mount(t, envoyEnd(t, first))}
	e := startRemote(t, m.xds)
	e.wantMetric(t, "glidepath_xds_envoys 1") // the one on the Unix socket
	e.envoy.Stop()
	e.startEnvoyWith(t, t.TempDir(), e.remoteBootstrap(t, m.envoy))
	if resp := e.get(t, "/v1/live"); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	e.setPolicy(t, shortTimeout)
	eventually(t, "a policy is in force", func() bool { return e.timeoutIsShort(t) })

	// Both ends go over to another authority. The Envoy that runs shows, when it
	// connects again, what its files hold by then.
	set(t, m.envoy, envoyEnd(t, second))
	set(t, m.xds, xdsEnd(t, second))
	if err := e.xds.stop(); err != nil {
		t.Fatal(err)
	}
	e.setPolicy(t, longTimeout)
	e.startXDS(t)
	eventually(t, "Envoy has connected with its renewed certificate", func() bool { return !e.timeoutIsShort(t) })

	// And so does the xds that runs, for an Envoy that starts then.
	set(t, m.xds, xdsEnd(t, third))
	set(t, m.envoy, envoyEnd(t, third))
	e.envoy.Stop()
	e.startEnvoyWith(t, t.TempDir(), e.remoteBootstrap(t, m.envoy))
	if resp := e.get(t, "/v1/live"); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
}

func set(t *testing.T, m *pki.Mount, files map[string][]byte) {
	t.Helper()
	if err := m.Set(files); err != nil {
		t.Fatal(err)
	}
}

func TestAnEnvoyThatIsNotKnownGetsNothing(t *testing.T) {
	t.Parallel()
	ca, stranger := authorityFor(t, "ca"), authorityFor(t, "stranger")
	e := startRemote(t, mount(t, xdsEnd(t, ca)))
	e.wantMetric(t, "glidepath_xds_envoys 1")
	strange := endOf(t, stranger, pki.Subject{URIs: []string{envoyName}}, ca)
	misled := maps.Clone(envoyEnd(t, ca))
	misled["ca.crt"] = stranger.PEM
	for name, tt := range map[string]struct {
		files  map[string][]byte
		change func(*envoy.RemoteXDS)
	}{
		"with a certificate of another authority": {files: strange},
		"with a certificate of another name":      {files: endOf(t, ca, pki.Subject{DNS: []string{"livehub.example"}}, ca)},
		"that trusts another authority":           {files: misled},
		"that looks for an xds of another name":   {files: envoyEnd(t, ca), change: func(r *envoy.RemoteXDS) { r.ServerName = "other.example" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mount(t, tt.files)
			b := e.remoteBootstrap(t, m)
			if tt.change != nil {
				tt.change(b.RemoteXDS)
				files, err := b.RemoteXDS.Secrets()
				if err != nil {
					t.Fatal(err)
				}
				for name, data := range files {
					if err := os.WriteFile(filepath.Join(b.RemoteXDS.SecretsDir, name), data, 0o600); err != nil {
						t.Fatal(err)
					}
				}
			}
			other := startWaiting(t, b)
			eventually(t, "it has tried several times", func() bool {
				return other.counter(t, "cluster.xds.upstream_cx_total") >= 2
			})
			if other.counter(t, "listener_manager.lds.update_success") != 0 || other.counter(t, "cluster_manager.cds.update_success") != 0 {
				t.Error("it got a configuration")
			}
		})
	}
	t.Run("without a certificate", func(t *testing.T) {
		t.Parallel()
		c, err := tls.Dial("tcp", e.options.Remote.Listen, &tls.Config{RootCAs: ca.Pool(), ServerName: xdsName, NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS13})
		if err == nil {
			// In TLS 1.3 a client learns only from the next word that it is not taken.
			_, err = c.Read(make([]byte, 1))
			_ = c.Close()
		}
		if err == nil || !strings.Contains(err.Error(), "certificate required") {
			t.Errorf("got %v", err)
		}
	})
	t.Run("without TLS", func(t *testing.T) {
		t.Parallel()
		wantNoHTTP(t, e.options.Remote.Listen, "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00")
	})
}

// waiting is an Envoy that has no configuration yet.
type waiting struct{ admin *http.Client }

// startWaiting starts an Envoy and returns once its admin interface answers.
func startWaiting(t *testing.T, b envoy.Bootstrap) *waiting {
	t.Helper()
	dir := t.TempDir()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, "unix", b.AdminSocket)
	}}
	t.Cleanup(transport.CloseIdleConnections)
	w := &waiting{admin: &http.Client{Transport: transport}}
	p, err := process.Start(t.Context(), process.Spec{
		Name: "envoy", Path: devtest.Tool(t, "envoy"), Dir: dir, Args: envoy.Args(writeBootstrap(t, dir, b), 1),
		Log: filepath.Join(dir, "envoy.log"), Stdout: filepath.Join(dir, "access.log"),
		Ready: func(ctx context.Context) error {
			req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://envoy/server_info", nil)
			if err != nil {
				return err
			}
			resp, err := w.admin.Do(req)
			if err != nil {
				return err
			}
			defer func() { _ = resp.Body.Close() }()
			if resp.StatusCode != http.StatusOK {
				return errors.New(resp.Status)
			}
			return nil
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	return w
}

func (w *waiting) counter(t *testing.T, name string) int {
	t.Helper()
	resp, err := w.admin.Get("http://envoy/stats?filter=" + name)
	if err != nil {
		t.Fatal(err)
	}
	return counterIn(t, string(readAll(t, resp)), name)
}

// counterIn gives one counter on a page of Envoy's.
func counterIn(t *testing.T, page, name string) int {
	t.Helper()
	for line := range strings.Lines(page) {
		if count, ok := strings.CutPrefix(line, name+": "); ok {
			n, err := strconv.Atoi(strings.TrimSpace(count))
			if err != nil {
				t.Fatal(err)
			}
			return n
		}
	}
	t.Fatalf("Envoy has no counter %s", name)
	return 0
}
