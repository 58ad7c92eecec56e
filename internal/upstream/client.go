package upstream

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"
)

// Config says how a source is asked. All fields are required.
type Config struct {
	// Transport makes the requests. It bounds connecting and the wait for headers.
	Transport http.RoundTripper
	// AtOnce is how many requests are under way at most; an answer that is not
	// closed yet is. Others wait until one ends, in the order in which they came.
	AtOnce int
	// Time is how long a request may take with its answer, the wait for its turn
	// not included.
	Time time.Duration
	// Stall is how long an answer may bring nothing while it is read.
	Stall time.Duration
	// Counts counts the requests.
	Counts *Counts
}

// Client asks a source. It is safe for concurrent use and holds nothing that has
// to be closed.
type Client struct {
	http  *http.Client
	turns chan struct{}
	time  time.Duration
	stall time.Duration
	count *Counts
}

// New gives a client. It makes no request. A redirect is an answer like others:
// a source leads nowhere else, and what it led to could be anything inside.
func New(cfg Config) *Client {
	follow := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &Client{
		http:  &http.Client{Transport: cfg.Transport, CheckRedirect: follow},
		turns: make(chan struct{}, cfg.AtOnce), time: cfg.Time, stall: cfg.Stall, count: cfg.Counts,
	}
}

// Do makes a request when it is its turn. kind is one of those that are counted
// apart. Whoever gets an answer closes it, or the next one waits for ever. An error
// names neither the URL nor anything that was sent.
func (c *Client) Do(req *http.Request, kind string) (*Answer, error) {
	ctx := req.Context()
	if err := c.begin(ctx); err != nil {
		c.count.ended(kind, unsent, 0)
		return nil, err
	}
	began := time.Now()
	bounded, cancel := context.WithTimeout(ctx, c.time)
	c.count.under.Inc()
	end := func(outcome string) {
		cancel()
		<-c.turns
		c.count.under.Dec()
		c.count.ended(kind, outcome, time.Since(began))
	}
	resp, err := c.http.Do(req.WithContext(bounded)) //nolint:gosec,bodyclose // the packages that ask make its URL out of the source's own, and close what they get
	if err != nil {
		// Without the URL that net/http adds.
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		end(onTheWay(ctx, err))
		return nil, err
	}
	return answer(ctx, resp, c.stall, cancel, end), nil
}

// begin waits for the turn of a request.
func (c *Client) begin(ctx context.Context) error {
	select {
	case c.turns <- struct{}{}:
		return nil
	default:
	}
	c.count.waiting.Inc()
	defer c.count.waiting.Dec()
	select {
	case c.turns <- struct{}{}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("waiting for other requests: %w", ctx.Err())
	}
}
