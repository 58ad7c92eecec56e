package extauthz_test

import (
	"encoding/base64"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/prometheus/client_golang/prometheus"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/bucket"
	"hangar.io/glidepath/authz/extauthz"
	"hangar.io/glidepath/authz/ticket"
	"hangar.io/glidepath/internal/seal"
)

// withTickets gives the same edge, with a key for tickets.
func (e *edge) withTickets(t testing.TB) (*edge, *ticket.Sealer) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	if err := seal.GenerateKeyFile(file); err != nil {
		t.Fatal(err)
	}
	s, err := ticket.NewSealer(file)
	if err != nil {
		t.Fatal(err)
	}
	out := *e
	out.reg = prometheus.NewRegistry()
	out.config.Limits, out.config.Metrics, out.config.Tickets = bucket.New(bucket.Config{}), extauthz.NewMetrics(out.reg), s
	if out.Server, err = extauthz.NewServer(out.config); err != nil {
		t.Fatal(err)
	}
	return &out, s
}

func ticketOf(resp *authv3.CheckResponse) string {
	for _, h := range resp.GetOkResponse().GetHeaders() {
		if h.GetHeader().GetKey() == "x-glidepath-renewal" {
			return h.GetHeader().GetValue()
		}
	}
	return ""
}

func TestStreamsAloneCarryATicket(t *testing.T) {
	plain, _ := newStack(t)
	e, sealer := plain.withTickets(t)
	for _, op := range api.Operations() {
		path := strings.NewReplacer("{app}", "shop", "{result}", "4f0c7d1e-2b6a-4c39-9d5e-8a1f3b2c7e90", "{taskRun}", "t", "{id}", "i",
			"{container}", "c", "{chainId}", "c", "{name}", "n", "{env}", "e").Replace(op.Path)
		resp := e.check(t, request(op.ID, op.Method, path, map[string]string{
			"authorization": "Bearer tower-token", "x-glidepath-on-behalf-of": "ana", "x-request-id": "r-1",
		}))
		text := ticketOf(resp)
		if resp.GetOkResponse() == nil || (text != "") != op.Stream {
			t.Errorf("%s: a ticket of %d bytes, stream %v", op.ID, len(text), op.Stream)
		}
		if !op.Stream {
			continue
		}
		got, err := sealer.Open(text)
		if err != nil || got.Op != op.ID || got.Target != path || got.Username != "tower" || got.OnBehalfOf != "ana" || got.RequestID != "r-1" {
			t.Errorf("%s: %v", op.ID, err)
		}
		if strings.Contains(fmt.Sprint(resp.GetDynamicMetadata()), text) {
			t.Errorf("%s: the ticket is in the log's metadata", op.ID)
		}
		if again := ticketOf(e.check(t, request(op.ID, op.Method, path, map[string]string{"authorization": "Bearer tower-token"}))); again == text {
			t.Errorf("%s: two streams have one ticket", op.ID)
		}
	}
}

func TestWithoutAKeyForTicketsNoStreamHasOne(t *testing.T) {
	e, _ := newStack(t)
	resp := e.check(t, request("streamLiveRuns", "GET", "/v1/apps/shop/live/stream", map[string]string{"authorization": "Bearer reader-token"}))
	if resp.GetOkResponse() == nil || ticketOf(resp) != "" {
		t.Errorf("got %v", resp)
	}
}

func TestAStreamsIdentityHoldsTheEndOfTheToken(t *testing.T) {
	plain, api := newStack(t)
	e, _ := plain.withTickets(t)
	expiry := time.Now().Add(3 * time.Hour).Truncate(time.Second)
	tok := "h." + base64.RawURLEncoding.EncodeToString(fmt.Appendf(nil, `{"exp":%d}`, expiry.Unix())) + ".s"
	api.AcceptUser(tok, "reader")
	for op, path := range map[string]string{"streamLiveRuns": "/v1/apps/shop/live/stream", "listLive": "/v1/apps/shop/live"} {
		resp := e.check(t, request(op, "GET", path, map[string]string{"authorization": "Bearer " + tok}))
		resp.GetOkResponse().Headers = resp.GetOkResponse().GetHeaders()[:1]
		c := e.claims(t, resp, "livehub")
		if op == "listLive" {
			if c.TokenExpiry != nil {
				t.Errorf("a read's identity holds %v", c.TokenExpiry)
			}
		} else if c.TokenExpiry == nil || !c.TokenExpiry.Equal(expiry) {
			t.Errorf("a stream's holds %v, want %v", c.TokenExpiry, expiry)
		}
	}
}
