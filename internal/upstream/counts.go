package upstream

import (
	"context"
	"errors"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// What becomes of a request.
const (
	answered    = "ok"
	absent      = "absent"      // 404
	refused     = "refused"     // another status below 500
	failed      = "failed"      // a status from 500 on
	rejected    = "rejected"    // an answer that is not what the source gives
	broken      = "broken"      // one that was cut
	stalled     = "stalled"     // one that stopped
	late        = "late"        // not whole within the time
	unreachable = "unreachable" // no answer at all
	unsent      = "unsent"      // its turn did not come in time
	left        = "left"        // nobody waited for it any more
)

func outcomes() []string {
	return []string{answered, absent, refused, failed, rejected, broken, stalled, late, unreachable, unsent, left}
}

// Metrics are those of all sources of a process.
type Metrics struct {
	requests       *prometheus.CounterVec
	seconds        *prometheus.HistogramVec
	under, waiting *prometheus.GaugeVec
}

// NewMetrics registers the metrics. Nil registers them nowhere.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	return &Metrics{
		requests: f.NewCounterVec(prometheus.CounterOpts{
			Name: "glidepath_source_requests_total", Help: "Requests to a source outside, by what was asked for and what became of it.",
		}, []string{"source", "kind", "outcome"}),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "glidepath_source_request_duration_seconds",
			Help:    "Time from sending a request to a source to the end of its answer.",
			Buckets: []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 90},
		}, []string{"source", "kind"}),
		under: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "glidepath_source_requests_in_flight", Help: "Requests to a source that are under way, answers that are being read among them.",
		}, []string{"source"}),
		waiting: f.NewGaugeVec(prometheus.GaugeOpts{
			Name: "glidepath_source_requests_waiting", Help: "Requests to a source that wait until others have ended.",
		}, []string{"source"}),
	}
}

// Counts are the metrics of one source.
type Counts struct {
	all            *Metrics
	source         string
	under, waiting prometheus.Gauge
}

// Of gives those of a source, of which so many kinds of things are asked.
func (m *Metrics) Of(source string, kinds ...string) *Counts {
	for _, kind := range kinds {
		for _, outcome := range outcomes() {
			m.requests.WithLabelValues(source, kind, outcome)
		}
	}
	return &Counts{all: m, source: source, under: m.under.WithLabelValues(source), waiting: m.waiting.WithLabelValues(source)}
}

func (c *Counts) ended(kind, outcome string, after time.Duration) {
	c.all.requests.WithLabelValues(c.source, kind, outcome).Inc()
	if outcome != unsent {
		c.all.seconds.WithLabelValues(c.source, kind).Observe(after.Seconds())
	}
}

func ofStatus(status int) string {
	switch {
	case status == http.StatusNotFound:
		return absent
	case status >= http.StatusInternalServerError:
		return failed
	case status >= http.StatusMultipleChoices:
		return refused
	default:
		return answered
	}
}

// onTheWay says what an error before an answer was. caller is the context of
// whoever asked.
func onTheWay(caller context.Context, err error) string { return ofError(caller, err, unreachable) }

// inTheMiddle says what an error in the middle of an answer was.
func inTheMiddle(caller context.Context, err error) string {
	if errors.Is(err, ErrStalled) {
		return stalled
	}
	return ofError(caller, err, broken)
}

func ofError(caller context.Context, err error, other string) string {
	timeout, ok := errors.AsType[net.Error](err)
	switch {
	case errors.Is(caller.Err(), context.Canceled):
		return left
	case caller.Err() != nil, errors.Is(err, context.DeadlineExceeded), ok && timeout.Timeout():
		return late
	default:
		return other
	}
}
