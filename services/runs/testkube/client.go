package testkube

import (
	"context"
	"encoding/json/jsontext"
	"encoding/json/v2"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"time"
)

// ErrNotFound is an execution that is not there, or is not this app's: nobody
// can tell the two apart.
var ErrNotFound = errors.New("no such execution of this app")

// ErrNoReport is an execution of this app that left no report.
var ErrNoReport = errors.New("the execution left no report")

// Bounds of what is asked for and taken.
const (
	maxListBytes   = 16 << 20 // of one page
	maxDetailBytes = 8 << 20  // of one execution
	attempts       = 3
	firstPause     = 100 * time.Millisecond
)

// Config is how Testkube is reached. All fields are required.
type Config struct {
	// URL is Testkube's, without the version: http://testkube-api-server.testkube:8088.
	URL string
	// Transport makes the requests; it bounds the connections of the process.
	Transport http.RoundTripper
	// DetailTime bounds reading one execution in full, DetailsTime reading all
	// of a list. What is not read by then is shown from the list.
	DetailTime, DetailsTime time.Duration
}

// Client reads Testkube. It is safe for concurrent use. A call takes as long as
// its context lets it, so that needs a deadline. An error that is none of the
// above says what Testkube did, and neither what it sent nor what it was asked.
type Client struct {
	base   *url.URL
	http   *http.Client
	detail time.Duration
	all    time.Duration
}

// New checks the URL; it makes no request.
func New(cfg Config) (*Client, error) {
	base, err := ParseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	return &Client{
		base: base.JoinPath("v1"), detail: cfg.DetailTime, all: cfg.DetailsTime,
		// Testkube leads nowhere else. A redirect could lead anywhere inside.
		http: &http.Client{Transport: cfg.Transport, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }},
	}, nil
}

// ParseURL reads the URL of a Testkube. Its errors do not say what was given:
// it may hold a password.
func ParseURL(value string) (*url.URL, error) {
	u, err := url.Parse(value)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("it is not the URL of a Testkube, http://host:port")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("the URL of a Testkube has no user, query or fragment")
	}
	return u, nil
}

// statusError is an answer that is not 200.
type statusError struct{ status int }

func (e *statusError) Error() string { return fmt.Sprintf("testkube answered %d", e.status) }

// get asks for what is at the path segments below the version, escaped. It asks
// again after a short while when nothing was answered, or by something in
// between. The body belongs to the caller.
func (c *Client) get(ctx context.Context, path string, query url.Values) (io.ReadCloser, error) {
	target := c.base.JoinPath(path)
	target.RawQuery = query.Encode()
	pause := firstPause
	for attempt := 1; ; attempt++ {
		body, err := c.try(ctx, target)
		if err == nil || attempt == attempts || !again(ctx, err) {
			return body, err
		}
		// Half of it is chance, so that those who failed together do not come together.
		wait := time.NewTimer(pause/2 + rand.N(pause)) //nolint:gosec // nobody gains by guessing a pause
		select {
		case <-ctx.Done():
			wait.Stop()
			return nil, fmt.Errorf("asking testkube: %w", context.Cause(ctx))
		case <-wait.C:
		}
		pause *= 2
	}
}

// again says whether the same request may be answered better at once.
func again(ctx context.Context, err error) bool {
	if ctx.Err() != nil {
		return false
	}
	if answered, ok := errors.AsType[*statusError](err); ok {
		return answered.status == http.StatusBadGateway || answered.status == http.StatusServiceUnavailable || answered.status == http.StatusGatewayTimeout
	}
	return true
}

func (c *Client) try(ctx context.Context, target *url.URL) (io.ReadCloser, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, fmt.Errorf("asking testkube: %w", err)
	}
	req.Header.Set("Accept", "application/json, */*;q=0.1")
	req.Header.Set("User-Agent", "glidepath-runs")
	resp, err := c.http.Do(req)
	if err != nil {
		// Without the URL that net/http adds.
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, fmt.Errorf("asking testkube: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		// What is left of a short body lets the connection be used again.
		_, _ = io.CopyN(io.Discard, resp.Body, 4<<10)
		_ = resp.Body.Close()
		return nil, &statusError{status: resp.StatusCode}
	}
	return resp.Body, nil
}

// getJSON reads the JSON of an answer of at most so many bytes into v. Parts of
// it that v has no field for are passed over, not held.
func (c *Client) getJSON(ctx context.Context, path string, query url.Values, most int64, v any) error {
	body, err := c.get(ctx, path, query)
	if err != nil {
		return err
	}
	defer body.Close()
	limited := &io.LimitedReader{R: body, N: most + 1}
	err = json.UnmarshalRead(limited, v, jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
	switch {
	case limited.N <= 0:
		return fmt.Errorf("testkube answered more than %d bytes", most)
	case ctx.Err() != nil:
		return fmt.Errorf("reading what testkube answered: %w", context.Cause(ctx))
	case err != nil:
		// The error of the decoder quotes what it read.
		return errors.New("testkube's answer breaks off or is not of the form that it has")
	}
	return nil
}

// absent says that Testkube has no such thing.
func absent(err error) bool {
	answered, ok := errors.AsType[*statusError](err)
	return ok && answered.status == http.StatusNotFound
}

// SpanName names the span of a request to Testkube by what it reads.
func SpanName(r *http.Request) string {
	switch segments := countSegments(r.URL.EscapedPath()); {
	case segments <= 2:
		return "list testkube executions"
	case segments == 3:
		return "get testkube execution"
	case segments == 4:
		return "list testkube artifacts"
	default:
		return "get testkube artifact"
	}
}
