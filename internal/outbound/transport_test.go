package outbound_test

import (
	"context"
	"crypto/tls"
	"net/http"
	"testing"
	"time"

	"hangar.io/glidepath/internal/outbound"
	"hangar.io/glidepath/internal/standin/relay"
)

func TestAConnectionThatIsCutSilentlyIsGivenUp(t *testing.T) {
	t.Parallel()
	ca := authority(t)
	way, err := relay.Start("127.0.0.1:0", serve(t, issue(t, ca, "127.0.0.1"), func(c *tls.Config) { c.NextProtos = []string{"h2"} }))
	if err != nil {
		t.Fatal(err)
	}
	defer way.Stop()
	source, err := outbound.NewSource("the source", outbound.Options{CAFile: write(t, ca.PEM)})
	if err != nil {
		t.Fatal(err)
	}
	transport := source.Transport(outbound.Proxies{}, outbound.Bounds{Header: time.Hour})
	transport.Hasten(10) // 2.5 s, which is long enough for a slow machine to answer
	defer transport.CloseIdleConnections()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	call := func() error {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+way.Addr+"/", nil)
		if err != nil {
			return err
		}
		resp, err := transport.RoundTrip(req)
		if err != nil {
			return err
		}
		if resp.ProtoMajor != 2 {
			t.Errorf("the answer came over HTTP/%d", resp.ProtoMajor)
		}
		return resp.Body.Close()
	}
	if err := call(); err != nil {
		t.Fatalf("before: %v", err)
	}
	way.Cut()
	if err := call(); err == nil || ctx.Err() != nil {
		t.Errorf("while it is cut the call ended with %v, by its own deadline: %t", err, ctx.Err() != nil)
	}
	way.Mend()
	if err := call(); err != nil {
		t.Errorf("after: %v", err)
	}
}
