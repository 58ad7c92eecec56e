package results

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"hangar.io/glidepath/internal/upstream"
)

const (
	// MaxWindow is how far back archived runs are read.
	MaxWindow = 30 * 24 * time.Hour

	// anyNamespace is the parent of everything.
	anyNamespace = "-"
	basePath     = "/apis/results.tekton.dev/v1alpha2/parents/"
)

// Limits bound what is read for one call. A zero field has a default.
type Limits struct {
	// PageRecords is how many records are asked for at once, at least 5; 200.
	PageRecords int
	// PageBytes is how large one page may be, as sent; 256 MiB.
	PageBytes int64
	// RecordBytes is how large the value of one record may be, as archived; 4 MiB,
	// more than twice of what a cluster can hold.
	RecordBytes int
	// LogBytes is how large one log may be; 1 GiB.
	LogBytes int64
	// Records is how many records one list may have; 500,000.
	Records int
	// Attempts is how often one request is made; 3.
	Attempts int
	// Pause is about how long the first pause between attempts is; 200 ms. A
	// server that asks for a longer one gets it, where there is time for that.
	Pause time.Duration
	// AtOnce is how many requests are under way at most, an answer that is being
	// read among them; 32. LogsAtOnce is the same for those of logs, which have
	// turns of their own since they may be read as slowly as somebody takes them; 16.
	AtOnce, LogsAtOnce int
	// Stall is how long an answer may bring nothing; 20 s.
	Stall time.Duration
	// Time is how long one request, and one list with what is done with its
	// records, may take; 90 s.
	Time time.Duration
}

func (l Limits) withDefaults() Limits {
	set(&l.PageRecords, 200)
	set(&l.PageBytes, 256<<20)
	set(&l.RecordBytes, 4<<20)
	set(&l.LogBytes, 1<<30)
	set(&l.Records, 500_000)
	set(&l.Attempts, 3)
	set(&l.Pause, 200*time.Millisecond)
	set(&l.AtOnce, 32)
	set(&l.LogsAtOnce, 16)
	set(&l.Stall, 20*time.Second)
	set(&l.Time, 90*time.Second)
	return l
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// Config is how Results is reached. URL and Transport are required.
type Config struct {
	// URL is that of the relay, or of Results itself: scheme, host, and a path
	// that stands before Results' own.
	URL string
	// Transport makes the calls. It bounds connecting and the wait for headers.
	Transport http.RoundTripper
	// Token gives the bearer token of this process, or "" for none. Nil: none. A
	// caller's token is never sent.
	Token func() (string, error)
	// Limits bound what is read.
	Limits Limits
	// Metrics counts the requests. Nil: nobody does.
	Metrics *upstream.Metrics
	// Now is the clock that the window counts from. Nil: time.Now.
	Now func() time.Time
}

// Client reads Results. It is safe for concurrent use and holds nothing that has
// to be closed.
type Client struct {
	records *upstream.Client
	logs    *upstream.Client
	base    *url.URL
	token   func() (string, error)
	limits  Limits
	now     func() time.Time
}

// What is asked for, as metrics name it.
const (
	kindRun   = "run"
	kindRuns  = "runs"
	kindTasks = "taskruns"
	kindLog   = "log"
	kindAlive = "alive" // whether an empty list is one
)

// New gives a client. It makes no call.
func New(cfg Config) (*Client, error) {
	base, err := CheckURL(cfg.URL)
	if err != nil {
		return nil, fmt.Errorf("configuring Tekton Results: %w", err)
	}
	if cfg.Transport == nil {
		return nil, errors.New("configuring Tekton Results: no transport")
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Metrics == nil {
		cfg.Metrics = upstream.NewMetrics(nil)
	}
	c := &Client{base: base, token: cfg.Token, limits: cfg.Limits.withDefaults(), now: cfg.Now}
	counts := cfg.Metrics.Of("results", kindRun, kindRuns, kindTasks, kindLog, kindAlive)
	of := func(atOnce int) *upstream.Client {
		return upstream.New(upstream.Config{Transport: cfg.Transport, AtOnce: atOnce, Time: c.limits.Time, Stall: c.limits.Stall, Counts: counts})
	}
	c.records, c.logs = of(c.limits.AtOnce), of(c.limits.LogsAtOnce)
	return c, nil
}

// CheckURL says what is wrong with the URL of Results, without its text, which
// may hold a password.
func CheckURL(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || (u.Scheme != "http" && u.Scheme != "https") {
		return nil, errors.New("it is not a URL, http://host:port or https://host:port")
	}
	if u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return nil, errors.New("it has more than scheme, host and path")
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	return u, nil
}

// segment is what Results takes as a part of a name.
var segment = regexp.MustCompile(`^[a-z0-9_-]{1,63}$`)

// path gives a path below a parent. Parts that may not be in one are an error.
func path(parts ...string) (string, error) {
	for _, p := range parts {
		if !segment.MatchString(p) {
			return "", errors.New("a name holds what may not stand in one")
		}
	}
	return basePath + strings.Join(parts, "/"), nil
}

// ask is a request: what kind it is of, and what is being done with it.
type ask struct{ kind, doing string }

// get makes one request for what is at a path. The caller closes the body.
func (c *Client) get(ctx context.Context, a ask, path string, query url.Values) (*upstream.Answer, error) {
	u := *c.base
	u.Path, u.RawQuery = u.Path+path, query.Encode()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, failed(a.doing, 0, err)
	}
	if c.token != nil {
		token, err := c.token()
		if err != nil {
			return nil, &Error{Doing: a.doing, Cause: fmt.Errorf("reading the token: %w", err)}
		}
		if token != "" {
			req.Header.Set("Authorization", "Bearer "+token)
		}
	}
	asked := c.records
	if a.kind == kindLog {
		asked = c.logs
	}
	answer, err := asked.Do(req, a.kind)
	if err != nil {
		return nil, failed(a.doing, 0, err)
	}
	return answer, nil
}

// again calls once until it gives something, with pauses, as often as is allowed.
// What cannot change is not asked for again, and nothing is when ctx will have
// ended by then.
func (c *Client) again(ctx context.Context, once func() error) error {
	// A list of its own, or a fill, may have no end.
	ctx, cancel := context.WithTimeout(ctx, c.limits.Time)
	defer cancel()
	pause := c.limits.Pause
	for attempt := 1; ; attempt++ {
		err := once()
		e, ok := errors.AsType[*Error](err)
		if !ok || !e.retryable() || attempt >= c.limits.Attempts || !upstream.Pause(ctx, pause, e.after) {
			return err
		}
		pause *= 3
	}
}
