package outbound

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"hangar.io/glidepath/internal/certs"
)

// Bounds are what differs from source to source. A zero field has a default.
type Bounds struct {
	// Header bounds how long the headers of an answer may take; 30 s.
	Header time.Duration
	// Connections bounds those to one host, those in use included; 64.
	Connections int
}

const (
	defaultHeader      = 30 * time.Second
	defaultConnections = 64
	idleTimeout        = 90 * time.Second
	maxAnswerHeader    = 64 << 10

	// An HTTP/2 connection takes every call to a host. One that was cut without a
	// word would take them all until the kernel gives up, a quarter of an hour later.
	silence = 15 * time.Second // before the other end is asked whether it is there
	answer  = 10 * time.Second // that it has
)

// Transport is an [http.RoundTripper] to a source. A renewed authority or
// client certificate holds for every connection that is opened after it was
// noticed; calls under way end on the connections that they have.
type Transport struct {
	source  *Source
	proxies Proxies
	bounds  Bounds
	health  http.HTTP2Config

	mu   sync.Mutex
	http *http.Transport // made from set
	set  *certs.Set
}

// Transport gives a transport to the source by way of the proxies. Close its
// idle connections when it is done with.
func (s *Source) Transport(proxies Proxies, bounds Bounds) *Transport {
	if bounds.Header == 0 {
		bounds.Header = defaultHeader
	}
	if bounds.Connections == 0 {
		bounds.Connections = defaultConnections
	}
	health := http.HTTP2Config{SendPingTimeout: silence, PingTimeout: answer}
	return &Transport{source: s, proxies: proxies, bounds: bounds, health: health}
}

// RoundTrip makes one call.
func (t *Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	return t.current().RoundTrip(r)
}

// CloseIdleConnections closes the connections that no call uses.
func (t *Transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.http != nil {
		t.http.CloseIdleConnections()
	}
}

func (t *Transport) current() *http.Transport {
	set := t.source.files.Current()
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.set == set {
		return t.http
	}
	if t.http != nil {
		t.http.CloseIdleConnections()
	}
	t.http, t.set = t.build(set), set
	return t.http
}

func (t *Transport) build(set *certs.Set) *http.Transport {
	return &http.Transport{
		Proxy:                  t.proxies.For,
		OnProxyConnectResponse: explainProxy,
		DialContext:            dialer().DialContext,
		TLSClientConfig:        tlsConfig(set),
		TLSHandshakeTimeout:    HandshakeTimeout,
		ResponseHeaderTimeout:  t.bounds.Header,
		MaxResponseHeaderBytes: maxAnswerHeader,
		MaxConnsPerHost:        t.bounds.Connections,
		MaxIdleConns:           t.bounds.Connections,
		MaxIdleConnsPerHost:    t.bounds.Connections,
		IdleConnTimeout:        idleTimeout,
		ForceAttemptHTTP2:      true,
		HTTP2:                  &t.health,
	}
}

// explainProxy says which proxy did not open the way, which the standard
// library's own error leaves out.
func explainProxy(_ context.Context, proxy *url.URL, _ *http.Request, answer *http.Response) error {
	switch answer.StatusCode {
	case http.StatusOK:
		return nil
	case http.StatusProxyAuthRequired:
		return fmt.Errorf("the proxy %s wants credentials, or others than it was given (407)", proxy.Host)
	default:
		return fmt.Errorf("the proxy %s does not open the way (%d)", proxy.Host, answer.StatusCode)
	}
}
