package testkube

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"time"

	"hangar.io/glidepath/internal/upstream"
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

	// Connections is how many requests are under way at most, and details how
	// many of them read an execution of a list in full: six lists, four at a
	// time each. Lists may ask for hundreds; the rest stays free for what a
	// caller needs first, the lists themselves and reports.
	Connections = 32
	details     = 24

	requestTime = 10 * time.Second
	stall       = 5 * time.Second
)

// What is asked for, as metrics name it.
const (
	kindList      = "list"
	kindExecution = "execution"
	kindArtifacts = "artifacts"
	kindReport    = "report"
)

// Config is how Testkube is reached. URL, Transport, DetailTime and DetailsTime are required.
type Config struct {
	// URL is Testkube's, without the version: http://testkube-api-server.testkube:8088.
	URL string
	// Transport makes the requests; it bounds the connections of the process.
	Transport http.RoundTripper
	// DetailTime bounds reading one execution in full, DetailsTime reading all
	// of a list. What is not read by then is shown from the list. RequestTime
	// bounds any other request with its answer; 0 is 10 s.
	DetailTime, DetailsTime, RequestTime time.Duration
	// Stall is how long an answer may bring nothing; 0 is 5 s.
	Stall time.Duration
	// Metrics counts the requests. Nil: nobody does.
	Metrics *upstream.Metrics
}

// Client reads Testkube. It is safe for concurrent use. A call ends by itself, in
// the time of the few requests that it takes; a context may end it before. An error
// that is none of the above says what Testkube did, and neither what it sent nor
// what it was asked.
type Client struct {
	base    *url.URL
	ask     *upstream.Client
	details chan struct{} // one for each execution of a list that is being read
	detail  time.Duration
	all     time.Duration
	each    time.Duration
}

// New checks the URL; it makes no request.
func New(cfg Config) (*Client, error) {
	base, err := ParseURL(cfg.URL)
	if err != nil {
		return nil, err
	}
	cfg.Stall, cfg.RequestTime = cmp.Or(cfg.Stall, stall), cmp.Or(cfg.RequestTime, requestTime)
	if cfg.Metrics == nil {
		cfg.Metrics = upstream.NewMetrics(nil)
	}
	return &Client{
		base: base.JoinPath("v1"), details: make(chan struct{}, details), detail: cfg.DetailTime, all: cfg.DetailsTime, each: cfg.RequestTime,
		ask: upstream.New(upstream.Config{
			Transport: cfg.Transport, AtOnce: Connections, Time: cfg.RequestTime, Stall: cfg.Stall,
			Counts: cfg.Metrics.Of("testkube", kindList, kindExecution, kindArtifacts, kindReport),
		}),
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
type statusError struct {
	status int
	own    bool          // it is Testkube that said so
	after  time.Duration // how long Testkube, or what is before it, asked to be left alone
}

func (e *statusError) Error() string { return fmt.Sprintf("testkube answered %d", e.status) }

// request is something that is asked of Testkube: what kind it is of, the escaped
// path segments below the version, and how often it is asked for at most.
type request struct {
	kind, path string
	query      url.Values
	tries      int
}

// get asks for something, again after a short while when nothing was answered, or
// by something in between. The body belongs to the caller.
func (c *Client) get(ctx context.Context, r request) (answer *upstream.Answer, err error) {
	err = c.again(ctx, r, func() error {
		answer, err = c.try(ctx, r)
		return err
	})
	return answer, err
}

// again calls once until it gives something, or as often as a request may be made.
func (c *Client) again(ctx context.Context, r request, once func() error) error {
	waiting, cancel := context.WithTimeout(ctx, c.each)
	defer cancel()
	pause := firstPause
	for try := 1; ; try++ {
		err := once()
		if err == nil {
			return nil
		}
		asked, worth := worthAgain(err)
		if try == r.tries || !worth || !upstream.Pause(waiting, pause, asked) {
			if ctx.Err() != nil {
				err = fmt.Errorf("asking testkube: %w", context.Cause(ctx))
			}
			return err
		}
		pause *= 2
	}
}

// lastError is of an answer that is not asked for again: it would be the same, or
// has taken long enough.
type lastError struct{ error }

func (e lastError) Unwrap() error { return e.error }

// worthAgain says whether the same request may be answered better, and after what
// time at the least.
func worthAgain(err error) (time.Duration, bool) {
	if _, ok := errors.AsType[lastError](err); ok {
		return 0, false
	}
	answered, ok := errors.AsType[*statusError](err)
	if !ok {
		return 0, true
	}
	switch answered.status {
	case http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout, http.StatusTooManyRequests:
		return answered.after, true
	default:
		return 0, false
	}
}

// try asks once.
func (c *Client) try(ctx context.Context, r request) (*upstream.Answer, error) {
	target := c.base.JoinPath(r.path)
	target.RawQuery = r.query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, target.String(), nil)
	if err != nil {
		return nil, errors.New("asking testkube: its URL is none") // without the URL
	}
	req.Header.Set("Accept", "application/json, */*;q=0.1")
	req.Header.Set("User-Agent", "glidepath-runs")
	answer, err := c.ask.Do(req, r.kind)
	if err != nil {
		return nil, fmt.Errorf("asking testkube: %w", err)
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close() // what else it says is of no interest
		after, _ := upstream.RetryAfter(answer.Header)
		kind, _, _ := mime.ParseMediaType(answer.Header.Get("Content-Type")) // what is none is not its own
		return nil, &statusError{status: answer.StatusCode, own: kind == ownProblems, after: after}
	}
	return answer, nil
}

// ownProblems is what Testkube writes what is wrong in. A relay that leads nowhere
// says 404 as well, and so does a Testkube that lacks the path: neither is proof of
// anything.
const ownProblems = "application/problem+json"

// absent says that Testkube has no such thing.
func absent(err error) bool {
	answered, ok := errors.AsType[*statusError](err)
	return ok && answered.own && answered.status == http.StatusNotFound
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
