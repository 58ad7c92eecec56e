package edge

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/xds"
)

// tlsEdge is an edge with TLS, and the Secret that it has its certificate from.
type tlsEdge struct {
	*edge
	ca     *pki.Authority
	secret *pki.Mount
}

// secretOf is the content of a Secret with a new certificate for a server of
// this name on loopback.
func secretOf(t *testing.T, ca *pki.Authority, name string) map[string][]byte {
	t.Helper()
	p, err := ca.Issue(pki.Loopback(name))
	if err != nil {
		t.Fatal(err)
	}
	return map[string][]byte{"tls.crt": p.Cert, "tls.key": p.Key}
}

func startTLS(t *testing.T, change func(*setup, *pki.Mount)) *tlsEdge {
	t.Helper()
	ca, err := pki.NewAuthority("edge-ca")
	if err != nil {
		t.Fatal(err)
	}
	secret, err := pki.NewMount(t.TempDir(), secretOf(t, ca, "first"))
	if err != nil {
		t.Fatal(err)
	}
	s := setup{options: func(o *xds.Options) { o.TLSCertFile, o.TLSKeyFile = secret.File("tls.crt"), secret.File("tls.key") }}
	if change != nil {
		change(&s, secret)
	}
	e := &tlsEdge{edge: start(t, s), ca: ca, secret: secret}
	e.url = "https://" + e.addr
	e.client = e.over(t, "http/1.1")
	return e
}

// over gives a client that speaks one version of HTTP.
func (e *tlsEdge) over(t *testing.T, protocol string) *http.Client {
	t.Helper()
	protocols := new(http.Protocols)
	protocols.SetHTTP1(protocol == "http/1.1")
	protocols.SetHTTP2(protocol == "h2")
	transport := &http.Transport{TLSClientConfig: e.config(), Protocols: protocols, DisableCompression: true}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: 30 * time.Second}
}

func (e *tlsEdge) config() *tls.Config {
	return &tls.Config{RootCAs: e.ca.Pool(), MinVersion: tls.VersionTLS10}
}

// handshake makes a connection and gives what was agreed on.
func (e *tlsEdge) handshake(ctx context.Context, c *tls.Config) (tls.ConnectionState, error) {
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	conn, err := (&tls.Dialer{Config: c}).DialContext(ctx, "tcp", e.addr)
	if err != nil {
		return tls.ConnectionState{}, err
	}
	defer func() { _ = conn.Close() }()
	return conn.(*tls.Conn).ConnectionState(), nil
}

// shown is the name on the certificate of a new connection.
func (e *tlsEdge) shown(t *testing.T) string {
	t.Helper()
	state, err := e.handshake(t.Context(), e.config())
	if err != nil {
		t.Fatal(err)
	}
	return state.PeerCertificates[0].Subject.CommonName
}

func TestTheHandshake(t *testing.T) {
	t.Parallel()
	e := startTLS(t, nil)
	for name, tt := range map[string]struct {
		change  func(*tls.Config)
		version uint16 // 0 is none
		alpn    string
	}{
		"of a client that can do everything": {func(c *tls.Config) { c.NextProtos = []string{"http/1.1", "h2"} }, tls.VersionTLS13, "h2"},
		"without HTTP/2":                     {func(c *tls.Config) { c.NextProtos = []string{"http/1.1"} }, tls.VersionTLS13, "http/1.1"},
		"without a word on the protocol":     {func(*tls.Config) {}, tls.VersionTLS13, ""},
		"of TLS 1.2":                         {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS12 }, tls.VersionTLS12, ""},
		"of TLS 1.1":                         {func(c *tls.Config) { c.MaxVersion = tls.VersionTLS11 }, 0, ""},
		"of TLS 1.2 with a cipher without authentication of what is sent": {func(c *tls.Config) {
			c.MaxVersion, c.CipherSuites = tls.VersionTLS12, []uint16{tls.TLS_ECDHE_ECDSA_WITH_AES_128_CBC_SHA}
		}, 0, ""},
		"of a client that trusts another authority": {func(c *tls.Config) { c.RootCAs = x509.NewCertPool() }, 0, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := e.config()
			tt.change(c)
			asked := false
			c.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
				asked = true
				return &tls.Certificate{}, nil
			}
			state, err := e.handshake(t.Context(), c)
			if (err == nil) != (tt.version != 0) || state.Version != tt.version || state.NegotiatedProtocol != tt.alpn {
				t.Errorf("got %s, %q, %v", tls.VersionName(state.Version), state.NegotiatedProtocol, err)
			}
			if asked {
				t.Error("a client certificate was asked for")
			}
		})
	}
}

func TestBothVersionsOfHTTPAreServedOverTLS(t *testing.T) {
	t.Parallel()
	e := startTLS(t, nil)
	for protocol, major := range map[string]int{"http/1.1": 1, "h2": 2} {
		e.client = e.over(t, protocol)
		resp := e.get(t, "/v1/apps/shop/live", "X-Forwarded-Proto", "http")
		if resp.StatusCode != http.StatusOK || resp.ProtoMajor != major {
			t.Errorf("%s: %s %d", protocol, resp.Proto, resp.StatusCode)
		}
		if got := received(t, resp).Get("X-Forwarded-Proto"); got != "https" {
			t.Errorf("%s: the backend is told %q", protocol, got)
		}
		e.lineOf(t, resp).want(t, line{"op": "listLive", "status": 200.0, "decision": "allow"})
	}
}

func TestACallerDoesNotSayWhetherThereIsTLS(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	if got := received(t, e.get(t, "/v1/live", "X-Forwarded-Proto", "https")).Get("X-Forwarded-Proto"); got != "http" {
		t.Errorf("the backend is told %q", got)
	}
}

func TestNothingIsAnsweredWithoutTLSWhereThereIsTLS(t *testing.T) {
	t.Parallel()
	e := startTLS(t, nil)
	for name, request := range map[string]string{
		"HTTP/1.1": "GET /v1/live?plain HTTP/1.1\r\nHost: edge\r\n\r\n",
		"HTTP/2":   "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			wantNoHTTP(t, e.addr, request)
		})
	}
	if n := e.backend.count("plain"); n != 0 {
		t.Errorf("%d calls without TLS reached the backend", n)
	}
}

// wantNoHTTP sends bytes and checks that the connection ends without an answer
// in HTTP. That nobody listens at all is fine too.
func wantNoHTTP(t *testing.T, addr, request string) {
	t.Helper()
	c, err := (&net.Dialer{Timeout: 10 * time.Second}).DialContext(t.Context(), "tcp", addr)
	if err != nil {
		return
	}
	defer func() { _ = c.Close() }()
	if err := c.SetDeadline(time.Now().Add(20 * time.Second)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(c, request); err != nil {
		return
	}
	answer, err := io.ReadAll(c)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("the connection stayed open, with %q", answer)
	}
	// An alert of TLS is 7 bytes, and the first says that it is one; HTTP/2
	// would begin with a frame of settings.
	if len(answer) > 0 && answer[0] != 21 || bytes.Contains(answer, []byte("HTTP/")) {
		t.Errorf("it was answered %q", answer)
	}
}

func TestARenewedCertificateIsShownWithoutAFailedCall(t *testing.T) {
	t.Parallel()
	e := startTLS(t, nil)
	stop, calls := make(chan struct{}), atomic.Int64{}
	var wg sync.WaitGroup
	for i := range 4 {
		client := e.over(t, []string{"http/1.1", "h2"}[i%2])
		if i >= 2 {
			client.Transport.(*http.Transport).DisableKeepAlives = true // a handshake a call
		}
		wg.Go(func() { e.keepCalling(t, client, stop, &calls) })
	}
	for _, name := range []string{"second", "third", "fourth"} {
		if err := e.secret.Set(secretOf(t, e.ca, name)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the certificate "+name+" is shown", func() bool { return e.shown(t) == name })
	}
	since := calls.Load()
	eventually(t, "calls go on", func() bool { return calls.Load() > since+8 })
	close(stop)
	wg.Wait()
}

func TestABrokenRenewalKeepsTheCertificateThatThereWas(t *testing.T) {
	t.Parallel()
	e := startTLS(t, nil)
	other := secretOf(t, e.ca, "other")
	for name, files := range map[string]map[string][]byte{
		"the key of another": {"tls.crt": secretOf(t, e.ca, "mismatched")["tls.crt"], "tls.key": other["tls.key"]},
		"no certificate":     {"tls.crt": []byte("nothing\n"), "tls.key": other["tls.key"]},
		"an empty key":       {"tls.crt": other["tls.crt"], "tls.key": nil},
	} {
		refused := e.renewalsRefused(t)
		if err := e.secret.Set(files); err != nil {
			t.Fatal(err)
		}
		eventually(t, "Envoy has refused "+name, func() bool { return e.renewalsRefused(t) > refused })
		if got := e.shown(t); got != "first" {
			t.Errorf("%s: the certificate %q is shown", name, got)
		}
		if resp := e.get(t, "/v1/live"); resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d", name, resp.StatusCode)
		}
	}
	if err := e.secret.Set(secretOf(t, e.ca, "mended")); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the mended certificate is shown", func() bool { return e.shown(t) == "mended" })
}

// renewalsRefused is Envoy's count of certificates in files that it did not
// take.
func (e *tlsEdge) renewalsRefused(t *testing.T) int {
	t.Helper()
	return counterIn(t, e.admin(t, "/stats?filter=key_rotation_failed"), "sds.listener.key_rotation_failed")
}

// What xds found good can be gone when Envoy reads it.
func TestAnEnvoyWithoutACertificateServesNothing(t *testing.T) {
	t.Parallel()
	e := startTLS(t, func(s *setup, secret *pki.Mount) {
		s.beforeEnvoy = func() {
			if err := secret.Set(nil); err != nil {
				t.Error(err)
			}
		}
	})
	wantNoHTTP(t, e.addr, "GET /v1/live?plain HTTP/1.1\r\nHost: edge\r\n\r\n")
	if state, err := e.handshake(t.Context(), e.config()); err == nil {
		t.Errorf("a handshake ended in %s", tls.VersionName(state.Version))
	}
}

func TestSpansGoToACollectorOverTLS(t *testing.T) {
	t.Parallel()
	ca, err := pki.NewAuthority("collector-ca")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := pki.NewAuthority("stranger-ca")
	if err != nil {
		t.Fatal(err)
	}
	here, err := ca.Issue(pki.Loopback("collector"))
	if err != nil {
		t.Fatal(err)
	}
	elsewhere, err := ca.Issue(pki.Subject{DNS: []string{"elsewhere.example"}})
	if err != nil {
		t.Fatal(err)
	}
	for name, tt := range map[string]struct {
		shown   pki.Pair
		trusted []byte
		stat    string // that counts the failure; empty is none
	}{
		"of a private authority": {here, ca.PEM, ""},
		"of another authority":   {here, stranger.PEM, "cluster.otlp.ssl.fail_verify_error"},
		"of another name":        {elsewhere, ca.PEM, "cluster.otlp.ssl.fail_verify_san"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			collector := startCollectorOn(t, tt.shown)
			mount, err := pki.NewMount(t.TempDir(), map[string][]byte{"ca.crt": tt.trusted})
			if err != nil {
				t.Fatal(err)
			}
			e := start(t, setup{ratio: 1, otlp: "https://" + collector.addr, options: func(o *xds.Options) { o.OTLPCAFile = mount.File("ca.crt") }})
			if tt.stat == "" {
				e.get(t, "/v1/live")
				collector.waitFor(t, []string{"glidepath.op", "listLiveRuns"})
				return
			}
			eventually(t, "Envoy has refused the collector", func() bool {
				e.get(t, "/v1/live")
				stats := e.admin(t, "/stats?filter=cluster.otlp.ssl")
				return strings.Contains(stats, tt.stat+": ") && !strings.Contains(stats, tt.stat+": 0\n")
			})
			if got := collector.bytes(); got != 0 {
				t.Errorf("the collector got %d bytes", got)
			}
			if tt.stat == "cluster.otlp.ssl.fail_verify_error" {
				if err := mount.Set(map[string][]byte{"ca.crt": ca.PEM}); err != nil {
					t.Fatal(err)
				}
				eventually(t, "the renewed authority is trusted", func() bool {
					e.get(t, "/v1/live")
					return collector.bytes() > 0
				})
			}
		})
	}
}
