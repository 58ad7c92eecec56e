// Package edgemetrics serves Envoy's own counters of the API's calls under the
// names that the API documents. Envoy counts what authz cannot see: calls that
// it answered itself, and those that authz was away for. Its admin interface is
// not for scraping, so authz reads it and passes on these metrics alone.
package edgemetrics

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	"golang.org/x/time/rate"

	"hangar.io/glidepath/envoy"
)

const (
	// readTimeout bounds one reading; a scrape waits ten seconds.
	readTimeout = 3 * time.Second
	// maxBytes bounds what Envoy may answer: some hundred bytes a series.
	maxBytes = 8 << 20
)

// Collector reads Envoy whenever it is collected. It is safe for concurrent
// use; concurrent collections read one after the other.
type Collector struct {
	client  *http.Client
	url     string
	timeout time.Duration

	mu     sync.Mutex
	errors prometheus.Counter
	log    rate.Sometimes
}

// New gives a Collector that reads the admin interface at admin, which is
// unix:// with an absolute path, or http:// with a loopback address: the
// interface can stop Envoy, so nobody else may reach it.
func New(admin string) (*Collector, error) {
	base, dial, err := endpoint(admin)
	if err != nil {
		return nil, fmt.Errorf("reading Envoy's counters: %w", err)
	}
	return &Collector{
		client: &http.Client{
			Transport:     &http.Transport{DialContext: dial, MaxIdleConns: 1, IdleConnTimeout: time.Minute},
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		timeout: readTimeout,
		url:     base + "/stats?usedonly&format=prometheus&filter=" + url.QueryEscape("^"+envoy.StatPrefix+`\.`),
		errors: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "glidepath_authz_edge_metrics_errors_total",
			Help: "Readings of Envoy's counters that failed. The calls' metrics are missing from such a scrape.",
		}),
		log: rate.Sometimes{First: 1, Interval: time.Minute},
	}, nil
}

// Close drops idle connections.
func (c *Collector) Close() { c.client.CloseIdleConnections() }

type dialFunc func(ctx context.Context, network, addr string) (net.Conn, error)

// endpoint gives the base URL of an admin interface and how to connect to it.
func endpoint(admin string) (base string, dial dialFunc, err error) {
	u, err := url.Parse(admin)
	if err != nil {
		return "", nil, fmt.Errorf("%q is no address: %w", admin, err)
	}
	dialer := &net.Dialer{Timeout: readTimeout}
	switch {
	case u.Scheme == "unix" && u.Host == "" && filepath.IsAbs(u.Path):
		return "http://envoy", func(ctx context.Context, _, _ string) (net.Conn, error) {
			return dialer.DialContext(ctx, "unix", u.Path)
		}, nil
	case u.Scheme == "http" && u.User == nil && strings.Trim(u.Path, "/") == "" && isLoopback(u.Hostname()):
		return "http://" + u.Host, dialer.DialContext, nil
	}
	return "", nil, fmt.Errorf("%q is neither unix:///path nor http:// with a loopback address", admin)
}

// CheckAddress says what is wrong with the address of an admin interface.
func CheckAddress(admin string) error {
	_, _, err := endpoint(admin)
	return err
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || (ip != nil && ip.IsLoopback())
}

// Describe gives the metrics' descriptions.
func (c *Collector) Describe(ch chan<- *prometheus.Desc) {
	ch <- requestsDesc
	ch <- durationDesc
	ch <- inFlightDesc
	c.errors.Describe(ch)
}

// Collect reads Envoy and passes its counters on. While Envoy is away there are
// none, and the error counter says so: a scrape of authz's own metrics must not
// fail with Envoy.
func (c *Collector) Collect(ch chan<- prometheus.Metric) {
	c.mu.Lock()
	defer c.mu.Unlock()
	metrics, err := c.read()
	if err != nil {
		c.errors.Inc()
		c.log.Do(func() { slog.Warn("Envoy's counters not read", "error", err) })
	}
	for _, m := range metrics {
		ch <- m
	}
	c.errors.Collect(ch)
}

func (c *Collector) read() ([]prometheus.Metric, error) {
	ctx, cancel := context.WithTimeout(context.Background(), c.timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.url, nil)
	if err != nil {
		return nil, fmt.Errorf("making the request: %w", err)
	}
	resp, err := c.client.Do(req)
	if err != nil {
		return nil, err // names the method and the URL already
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("the admin interface answered %s", resp.Status)
	}
	body := &io.LimitedReader{R: resp.Body, N: maxBytes}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(body)
	if err != nil {
		return nil, fmt.Errorf("parsing the counters: %w", err)
	}
	if body.N <= 0 {
		return nil, errors.New("more counters than there can be")
	}
	return translate(families)
}

// translate gives the API's metrics of Envoy's families.
func translate(families map[string]*dto.MetricFamily) ([]prometheus.Metric, error) {
	requests, err := requestCounters(families[envoy.StatFamily(envoy.StatRequests)])
	if err != nil {
		return nil, err
	}
	durations, err := durationHistograms(families[envoy.StatFamily(envoy.StatDurations)])
	if err != nil {
		return nil, err
	}
	inFlight, err := inFlightGauges(families[envoy.StatFamily(envoy.StatInFlight)])
	if err != nil {
		return nil, err
	}
	return slices.Concat(requests, durations, inFlight), nil
}
