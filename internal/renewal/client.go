package renewal

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"sync/atomic"
	"time"

	"hangar.io/glidepath/internal/outbound"
)

const (
	// renewTime bounds one request for renewals. authz bounds each decision by
	// less.
	renewTime = 8 * time.Second
	// maxAnswer bounds what is read of an answer: tickets and identities.
	maxAnswer = MaxBatch*(MaxTicketBytes+4<<10) + 4<<10
	// connections bounds those to one authz: the batches under way, and the one
	// that waits for the next epoch.
	connections = maxBatches + 2
)

// client asks one of several authz, and goes on to the next when one is away.
type client struct {
	http  *http.Client
	close func()
	urls  []string
	next  atomic.Uint32 // the one to ask; grows by one with each that is away
}

func newClient(o Options) (*client, error) {
	source, err := outbound.NewSource("authz", o.TLS)
	if err != nil {
		return nil, err
	}
	// No proxy: authz is in the cluster.
	t := source.Transport(outbound.Proxies{}, outbound.Bounds{Header: HoldTime + renewTime, Connections: connections})
	return &client{http: &http.Client{Transport: t, CheckRedirect: noRedirect}, close: t.CloseIdleConnections, urls: o.URLs}, nil
}

// noRedirect keeps tickets where they are sent to.
func noRedirect(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }

// renew shows tickets. There are as many answers as tickets.
func (c *client) renew(ctx context.Context, tickets []string) ([]Answer, error) {
	body, err := json.Marshal(Request{Tickets: tickets})
	if err != nil {
		return nil, fmt.Errorf("writing a request for renewal: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, renewTime)
	defer cancel()
	var got Answers
	if err := c.call(ctx, http.MethodPost, RenewPath, body, &got); err != nil {
		return nil, err
	}
	if len(got.Answers) != len(tickets) {
		return nil, fmt.Errorf("%d answers to %d tickets", len(got.Answers), len(tickets))
	}
	return got.Answers, nil
}

// epoch waits for an epoch other than the known one, and gives the present one
// at the latest after HoldTime.
func (c *client) epoch(ctx context.Context, known string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, HoldTime+renewTime)
	defer cancel()
	var got Epoch
	if err := c.call(ctx, http.MethodGet, EpochPath+"?"+url.Values{"after": {known}}.Encode(), nil, &got); err != nil {
		return "", err
	}
	if got.Epoch == "" {
		return "", errors.New("an answer without an epoch")
	}
	return got.Epoch, nil
}

func (c *client) call(ctx context.Context, method, path string, body []byte, into any) error {
	turn := c.next.Load()
	base := c.urls[int(turn)%len(c.urls)]
	err := c.ask(ctx, method, base+path, body, into)
	if err != nil {
		// Once for all that were under way there.
		c.next.CompareAndSwap(turn, turn+1)
		return fmt.Errorf("asking authz: %w", err)
	}
	return nil
}

func (c *client) ask(ctx context.Context, method, target string, body []byte, into any) error {
	r, err := http.NewRequestWithContext(ctx, method, target, bytes.NewReader(body))
	if err != nil {
		return err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return err
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return err
	}
	switch {
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("status %d", resp.StatusCode)
	case len(raw) > maxAnswer:
		return errors.New("an answer that is too large")
	}
	return json.Unmarshal(raw, into)
}
