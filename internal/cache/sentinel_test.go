package cache

import (
	"bufio"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/outbound"
)

// sentinel listens with TLS and answers whoever asks that the master is there.
func sentinel(t *testing.T, config *tls.Config, master *url.URL) (addr string) {
	t.Helper()
	return listenTLS(t, config, "127.0.0.1", func(c net.Conn) {
		defer c.Close()
		answer(c, master)
	})
}

func answer(c net.Conn, master *url.URL) {
	in := bufio.NewReader(c)
	for {
		command, err := readCommand(in)
		if err != nil {
			return
		}
		switch asked := strings.ToLower(strings.Join(command, " ")); {
		case asked == "sentinel get-master-addr-by-name main":
			_, err = fmt.Fprintf(c, "*2\r\n$%d\r\n%s\r\n$%d\r\n%s\r\n", len(master.Hostname()), master.Hostname(), len(master.Port()), master.Port())
		case asked == "sentinel sentinels main":
			_, err = io.WriteString(c, "*0\r\n")
		case strings.HasPrefix(asked, "subscribe "):
			// It has nothing to tell.
		default:
			_, err = io.WriteString(c, "-ERR unknown command\r\n")
		}
		if err != nil {
			return
		}
	}
}

// readCommand reads an array of strings, as every command is sent.
func readCommand(in *bufio.Reader) ([]string, error) {
	number := func() (int, error) {
		line, err := in.ReadString('\n')
		if err != nil {
			return 0, err
		}
		return strconv.Atoi(strings.Trim(line, "*$\r\n"))
	}
	n, err := number()
	if err != nil {
		return nil, err
	}
	out := make([]string, n)
	for i := range out {
		size, err := number()
		if err != nil {
			return nil, err
		}
		word := make([]byte, size+len("\r\n"))
		if _, err := io.ReadFull(in, word); err != nil {
			return nil, err
		}
		out[i] = string(word[:size])
	}
	return out, nil
}

func TestASentinelAndTheMasterItNamesAreHeldToTheirOwnNames(t *testing.T) {
	ca, err := pki.NewAuthority("redis-ca")
	if err != nil {
		t.Fatal(err)
	}
	trust := outbound.Options{CAFile: writeFile(t, t.TempDir(), "ca.crt", ca.PEM)}
	const first, second = "127.0.0.1", "127.0.0.2"
	at := func(ip string) pki.Subject { return pki.Subject{IPs: []net.IP{net.ParseIP(ip)}} }
	for name, tt := range map[string]struct {
		sentinel, master string // what each shows
		used             bool
	}{
		"each shows its own":              {first, second, true},
		"the master shows the Sentinel's": {first, first, false},
		"the Sentinel shows the master's": {second, second, false},
	} {
		t.Run(name, func(t *testing.T) {
			master, err := url.Parse(inFront(t, realRedis(t), second, serverTLS(t, ca, at(tt.master), tls.NoClientCert)))
			if err != nil {
				t.Fatal(err)
			}
			u := *master
			u.Host = sentinel(t, serverTLS(t, ca, at(tt.sentinel), tls.NoClientCert), master)
			u.RawQuery = "master_name=main"
			r := openConfig(t, RedisConfig{URL: u.String(), TLS: trust, Service: "test", Timeout: patience, Metrics: prometheus.NewRegistry()})
			if r.Up() != tt.used {
				t.Errorf("used is %t", r.Up())
			}
		})
	}
}
