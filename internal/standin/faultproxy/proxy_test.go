package faultproxy_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/devenv/ports"
	"hangar.io/glidepath/internal/standin/faultproxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// start puts a proxy in front of a server that answers "real", over HTTP/2, and returns a client of the proxy.
func start(t *testing.T, behind http.HandlerFunc) (*faultproxy.Proxy, *http.Client) {
	t.Helper()
	if behind == nil {
		behind = func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "real") }
	}
	server := httptest.NewUnstartedServer(behind)
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(server.Close)
	port, err := ports.Reserve()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(port.Release)
	pool := x509.NewCertPool()
	pool.AddCert(server.Certificate())
	trust := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	p, err := faultproxy.Start(faultproxy.Config{
		Addr: port.Addr(), Certificate: server.TLS.Certificates[0], Target: server.URL, TargetTLS: trust,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Stop)
	transport := &http.Transport{TLSClientConfig: trust.Clone(), ForceAttemptHTTP2: true}
	t.Cleanup(transport.CloseIdleConnections)
	return p, &http.Client{Transport: transport}
}

// call returns what a client sees: a status and body, or an error.
func call(ctx context.Context, client *http.Client, url string) (status int, body string, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(data), err
}

func TestAFaultMeetsTheRequestsThatFitItAndNoOthers(t *testing.T) {
	for name, tc := range map[string]struct {
		fault  faultproxy.Fault
		status int
		body   string
		broken bool
	}{
		"no fault":                    {faultproxy.Fault{Path: "/other"}, 200, "real", false},
		"another method":              {faultproxy.Fault{Method: "POST", Status: 500}, 200, "real", false},
		"a status":                    {faultproxy.Fault{Status: 500, Body: "no"}, 500, "no", false},
		"a status for the path":       {faultproxy.Fault{Method: "GET", Path: "/a", Status: 403, Body: "{}"}, 403, "{}", false},
		"garbage with a good status":  {faultproxy.Fault{Status: 200, Body: "\x00{{"}, 200, "\x00{{", false},
		"a short delay":               {faultproxy.Fault{Delay: time.Millisecond}, 200, "real", false},
		"no answer at all":            {faultproxy.Fault{Abort: true}, 0, "", true},
		"an answer cut in the middle": {faultproxy.Fault{Status: 200, Body: `{"half":`, Abort: true}, 200, `{"half":`, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, client := start(t, nil)
			p.Set(tc.fault)
			status, body, err := call(t.Context(), client, p.URL()+"/a/b")
			if status != tc.status || body != tc.body || (err != nil) != tc.broken {
				t.Errorf("got %d %q %v", status, body, err)
			}
			p.Clear()
			if status, body, err := call(t.Context(), client, p.URL()+"/a/b"); status != 200 || body != "real" || err != nil {
				t.Errorf("after Clear: %d %q %v", status, body, err)
			}
			if got := p.Count("GET", "/a"); got != 2 {
				t.Errorf("counted %d requests, want 2", got)
			}
			if got := p.Count("POST", "/"); got != 0 {
				t.Errorf("counted %d other requests, want none", got)
			}
		})
	}
}

func TestAFaultCanMeetAFewRequestsOnly(t *testing.T) {
	p, client := start(t, nil)
	p.Set(faultproxy.Fault{Status: 500, Times: 2}, faultproxy.Fault{Status: 429, Times: 1})
	for i, want := range []int{500, 500, 429, 200} {
		if status, _, err := call(t.Context(), client, p.URL()); status != want || err != nil {
			t.Errorf("request %d: %d %v, want %d", i+1, status, err, want)
		}
	}
}

func TestADelayEndsWhenTheClientGivesUp(t *testing.T) {
	reached := make(chan struct{}, 1)
	p, client := start(t, func(http.ResponseWriter, *http.Request) { reached <- struct{}{} })
	p.Set(faultproxy.Fault{Delay: time.Hour})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, _, err := call(ctx, client, p.URL()); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v", err)
	}
	p.Stop() // waits for nothing: goleak sees a handler that does not end
	select {
	case <-reached:
		t.Error("the request went on to the server")
	default:
	}
}

func TestDownRefusesConnectionsAndBreaksTheOpenOnesUntilUp(t *testing.T) {
	streaming := make(chan struct{})
	p, client := start(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/watch" {
			_ = http.NewResponseController(w).Flush()
			close(streaming)
			<-r.Context().Done()
		}
	})
	broken := make(chan error, 1)
	go func() {
		_, _, err := call(t.Context(), client, p.URL()+"/watch")
		broken <- err
	}()
	<-streaming
	p.Down()
	p.Down() // twice is harmless
	if err := <-broken; err == nil {
		t.Error("an open stream ended as if all were well")
	}
	if _, _, err := call(t.Context(), client, p.URL()); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("while down: %v, want a refused connection", err)
	}
	if err := p.Up(); err != nil {
		t.Fatal(err)
	}
	if status, _, err := call(t.Context(), client, p.URL()); status != 200 || err != nil {
		t.Errorf("after Up: %d %v", status, err)
	}
}

func TestBothSidesSpeakHTTP2(t *testing.T) {
	p, client := start(t, func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) })
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.URL(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil || resp.Proto != "HTTP/2.0" || string(body) != "HTTP/2.0" {
		t.Errorf("the client spoke %s, the server %s: %v", resp.Proto, body, err)
	}
}

func TestAPortThatIsTakenIsAnError(t *testing.T) {
	p, _ := start(t, nil)
	other, err := faultproxy.Start(faultproxy.Config{Addr: p.URL()[len("https://"):], Target: p.URL()})
	if !errors.Is(err, syscall.EADDRINUSE) {
		t.Errorf("got %v, %v", other, err)
	}
}
