package renewals_test

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"hangar.io/glidepath/internal/renewal"
)

// from posts a request for renewals from an address of this machine and gives
// the connection. Of its body as many bytes come as rest leaves.
func from(t *testing.T, server *httptest.Server, address, body string, rest int) net.Conn {
	t.Helper()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(address)}, Timeout: 10 * time.Second}
	c, err := d.DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if err := c.SetDeadline(time.Now().Add(time.Minute)); err != nil {
		t.Fatal(err)
	}
	_, err = fmt.Fprintf(c, "POST %s HTTP/1.1\r\nHost: authz\r\nContent-Length: %d\r\n\r\n%s", renewal.RenewPath, len(body)+rest, body)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func statusOf(t *testing.T, c net.Conn) int {
	t.Helper()
	resp, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	_ = c.Close()
	return resp.StatusCode
}

func TestAPeerThatHoldsItsRequestsBackKeepsNobodyElseWaiting(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.server.Handler())
	t.Cleanup(server.Close) // after the connections
	batch := fmt.Sprintf(`{"tickets":[%q]}`, w.ticket(time.Hour, time.Now()))

	held := from(t, server, "127.0.0.1", "{", 1000)
	for range 200 { // many more than there are places
		from(t, server, "127.0.0.1", "{", 1000)
	}
	if got := statusOf(t, from(t, server, "127.0.0.2", batch, 0)); got != http.StatusOK {
		t.Errorf("another peer gets %d", got)
	}
	if got := statusOf(t, held); got != http.StatusBadRequest && got != http.StatusServiceUnavailable {
		t.Errorf("a request that does not come gets %d", got)
	}
	// What was held is free again: the body has two seconds.
	deadline := time.Now().Add(time.Minute)
	for {
		got := statusOf(t, from(t, server, "127.0.0.1", batch, 0))
		if got == http.StatusOK {
			return
		}
		if got != http.StatusServiceUnavailable || time.Now().After(deadline) {
			t.Fatalf("the same peer, once its requests are over, gets %d", got)
		}
	}
}

func TestARequestThatComesInPiecesIsAnswered(t *testing.T) {
	w := newWorld(t)
	server := httptest.NewServer(w.server.Handler())
	t.Cleanup(server.Close) // after the connections
	batch := fmt.Sprintf(`{"tickets":[%q]}`, w.ticket(time.Hour, time.Now()))
	c := from(t, server, "127.0.0.1", batch[:10], len(batch)-10)
	if _, err := c.Write([]byte(batch[10:])); err != nil {
		t.Fatal(err)
	}
	if got := statusOf(t, c); got != http.StatusOK {
		t.Errorf("got %d", got)
	}
}
