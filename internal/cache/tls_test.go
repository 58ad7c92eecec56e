package cache

import (
	"context"
	"crypto/tls"
	"crypto/x509/pkix"
	"io"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/outbound"
)

// tlsRedis gives the URL of a real Redis over TLS, with a certificate of ca for
// a server of this name, that asks for client certificates as it is told to.
// The pinned redis-server is built without TLS, so something in front of it
// speaks it.
func tlsRedis(t *testing.T, ca *pki.Authority, server pki.Subject, clients tls.ClientAuthType) (rawURL string) {
	t.Helper()
	return inFront(t, realRedis(t), "127.0.0.1", serverTLS(t, ca, server, clients))
}

// inFront gives the URL of what takes TLS off on host and passes on to the Redis
// of another URL.
func inFront(t *testing.T, rawURL, host string, config *tls.Config) string {
	t.Helper()
	u, err := url.Parse(rawURL)
	if err != nil {
		t.Fatal(err)
	}
	u.Scheme, u.Host = "rediss", terminate(t, config, host, u.Host)
	return u.String()
}

func serverTLS(t *testing.T, ca *pki.Authority, server pki.Subject, clients tls.ClientAuthType) *tls.Config {
	t.Helper()
	shown, err := ca.Issue(server)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := shown.TLS()
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{cert}, ClientAuth: clients, ClientCAs: ca.Pool(), MinVersion: tls.VersionTLS12}
}

// terminate takes TLS off what comes in on host and passes it on to another
// address.
func terminate(t *testing.T, config *tls.Config, host, to string) (addr string) {
	t.Helper()
	return listenTLS(t, config, host, func(front net.Conn) { pass(t.Context(), front, to) })
}

// listenTLS has every connection to a port of its own on host handled, until
// the test ends.
func listenTLS(t *testing.T, config *tls.Config, host string, handle func(net.Conn)) (addr string) {
	t.Helper()
	l, err := tls.Listen("tcp", net.JoinHostPort(host, "0"), config)
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			all.Go(func() { handle(c) })
		}
	})
	t.Cleanup(func() {
		_ = l.Close()
		all.Wait()
	})
	return l.Addr().String()
}

// pass copies between a connection and a new one to the address until either
// ends or ctx does.
func pass(ctx context.Context, front net.Conn, to string) {
	defer front.Close()
	behind, err := (&net.Dialer{}).DialContext(ctx, "tcp", to)
	if err != nil {
		return
	}
	closeBoth := func() { _ = front.Close(); _ = behind.Close() }
	defer context.AfterFunc(ctx, closeBoth)()
	var back sync.WaitGroup
	back.Go(func() {
		_, _ = io.Copy(front, behind)
		closeBoth()
	})
	_, _ = io.Copy(behind, front)
	closeBoth()
	back.Wait()
}

func writeFile(t *testing.T, dir, name string, data []byte) string {
	t.Helper()
	file := filepath.Join(dir, name)
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestARealRedisOverTLS(t *testing.T) {
	ca, err := pki.NewAuthority("redis-ca")
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := pki.NewAuthority("stranger-ca")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	client, err := ca.Issue(pki.Loopback("livehub"))
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, err := client.Write(dir, "client")
	if err != nil {
		t.Fatal(err)
	}
	trusted, untrusted := writeFile(t, dir, "ca.crt", ca.PEM), writeFile(t, dir, "stranger.crt", stranger.PEM)
	asks := tlsRedis(t, ca, pki.Loopback("redis"), tls.RequireAndVerifyClientCert)
	open := tlsRedis(t, ca, pki.Loopback("redis"), tls.NoClientCert)
	misnamed := tlsRedis(t, ca, pki.Subject{Name: pkix.Name{CommonName: "redis"}, DNS: []string{"redis.example"}}, tls.NoClientCert)
	for name, tt := range map[string]struct {
		url  string
		tls  outbound.Options
		used bool
	}{
		"of a private authority":                        {open, outbound.Options{CAFile: trusted}, true},
		"of an authority that the system does not know": {open, outbound.Options{}, false},
		"of another authority":                          {open, outbound.Options{CAFile: untrusted}, false},
		"of another name":                               {misnamed, outbound.Options{CAFile: trusted}, false},
		"that asks for a certificate and gets one":      {asks, outbound.Options{CAFile: trusted, CertFile: certFile, KeyFile: keyFile}, true},
		"that asks for a certificate and gets none":     {asks, outbound.Options{CAFile: trusted}, false},
		"spoken to without TLS":                         {strings.Replace(open, "rediss://", "redis://", 1), outbound.Options{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := openConfig(t, RedisConfig{URL: tt.url, TLS: tt.tls, Service: "test", Timeout: patience, Metrics: prometheus.NewRegistry()})
			if r.Up() != tt.used {
				t.Fatalf("used is %t", r.Up())
			}
			if tt.used {
				c := newCache(t, r, func(*Config[string]) {})
				expect(t, c, "k", time.Hour, &source{value: "v"}, "v")
			}
		})
	}
}

// Both nodes are one Redis, which says of itself that it is at the second one's
// address: what is used of it has gone through both.
func TestEachNodeOfAClusterIsHeldToItsOwnName(t *testing.T) {
	ca, err := pki.NewAuthority("redis-ca")
	if err != nil {
		t.Fatal(err)
	}
	trust := outbound.Options{CAFile: writeFile(t, t.TempDir(), "ca.crt", ca.PEM)}
	const first, second = "127.0.0.1", "127.0.0.2"
	at := func(ip string) pki.Subject { return pki.Subject{IPs: []net.IP{net.ParseIP(ip)}} }
	for name, tt := range map[string]struct {
		shown string // by the second node
		used  bool
	}{
		"each shows its own":           {second, true},
		"the second shows the first's": {first, false},
	} {
		t.Run(name, func(t *testing.T) {
			real, admin := cluster(t)
			seed := inFront(t, real, first, serverTLS(t, ca, at(first), tls.NoClientCert))
			node, err := url.Parse(inFront(t, real, second, serverTLS(t, ca, at(tt.shown), tls.NoClientCert)))
			if err != nil {
				t.Fatal(err)
			}
			for key, value := range map[string]string{"cluster-announce-ip": node.Hostname(), "cluster-announce-port": node.Port()} {
				if err := admin.ConfigSet(t.Context(), key, value).Err(); err != nil {
					t.Fatal(err)
				}
			}
			eventually(t, "the cluster to say where it is", func() bool {
				nodes, err := admin.ClusterNodes(t.Context()).Result()
				return err == nil && strings.Contains(nodes, " "+node.Host+"@")
			})
			u, err := url.Parse(seed)
			if err != nil {
				t.Fatal(err)
			}
			seed += "?addr=" + u.Host // a second address makes it a cluster's
			r := openConfig(t, RedisConfig{URL: seed, TLS: trust, Service: "test", Timeout: patience, Metrics: prometheus.NewRegistry()})
			if r.Up() != tt.used {
				t.Errorf("used is %t", r.Up())
			}
		})
	}
}

func TestOptionsOfTLSNeedARedisWithTLS(t *testing.T) {
	t.Parallel()
	if err := CheckURL("redis://user:secret@a:1", outbound.Options{CAFile: "ca.crt"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	if err := CheckURL("rediss://user:secret@a:1", outbound.Options{CertFile: "tls.crt"}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
	_, err := OpenRedis(RedisConfig{
		URL: "rediss://user:secret@a:1", TLS: outbound.Options{CAFile: "/nowhere/ca.crt"}, Service: "test", Timeout: 1, Metrics: prometheus.NewRegistry(),
	})
	if err == nil || !strings.Contains(err.Error(), "/nowhere/ca.crt") || strings.Contains(err.Error(), "secret") {
		t.Errorf("got %v", err)
	}
}
