package review

import (
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// The questions and their results, as metrics name them.
const (
	kindToken  = "token"
	kindAccess = "access"

	resultAccepted = "accepted"
	resultRefused  = "refused"
	resultFailed   = "failed"
)

// Metrics counts questions and what the caches spare.
type Metrics struct {
	reg     prometheus.Registerer
	reviews *prometheus.CounterVec
	seconds *prometheus.HistogramVec

	tokens, access lookups
}

// lookups are the counters of one cache, found once: With costs more than the
// look-up that it would count.
type lookups struct {
	hit, refused, miss, joined, bypass prometheus.Counter
}

// NewMetrics registers the metrics of reviews and of their slots.
func NewMetrics(reg prometheus.Registerer, s *Slots) *Metrics {
	f := promauto.With(reg)
	cache := f.NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_authz_cache_lookups_total",
		Help: "Questions by how they were answered: from the cache (hit, refused), by the API server (miss), by another caller's question (joined), or past the cache because they were for a write (bypass).",
	}, []string{"cache", "result"})
	m := &Metrics{
		reg: reg,
		reviews: f.NewCounterVec(prometheus.CounterOpts{
			Name: "glidepath_authz_reviews_total",
			Help: "Reviews asked of the API server.",
		}, []string{"kind", "result"}),
		seconds: f.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "glidepath_authz_review_duration_seconds",
			Help:    "Time the API server took for a review, waiting for a slot not included.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2},
		}, []string{"kind"}),
		tokens: newLookups(cache, kindToken),
		access: newLookups(cache, kindAccess),
	}
	for c := range classes {
		s.register(f, c)
	}
	return m
}

func newLookups(v *prometheus.CounterVec, cache string) lookups {
	of := func(result string) prometheus.Counter { return v.WithLabelValues(cache, result) }
	return lookups{
		hit: of("hit"), refused: of("refused"), miss: of("miss"), joined: of("joined"), bypass: of("bypass"),
	}
}

func (s *Slots) register(f promauto.Factory, c class) {
	p := &s.pools[c]
	labels := prometheus.Labels{"class": classNames[c]}
	gauge := func(name, help string, value func() float64) {
		f.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help, ConstLabels: labels}, value)
	}
	gauge("glidepath_authz_review_slots", "Reviews that may be under way at once.",
		func() float64 { return float64(cap(p.slots)) })
	gauge("glidepath_authz_review_slots_in_use", "Reviews under way.",
		func() float64 { return float64(len(p.slots)) })
	gauge("glidepath_authz_reviews_waiting", "Reviews waiting for a slot.",
		func() float64 { return float64(p.waiting.Load()) })
	f.NewCounterFunc(prometheus.CounterOpts{
		Name: "glidepath_authz_reviews_shed_total", ConstLabels: labels,
		Help: "Reviews refused because too many were waiting.",
	}, func() float64 { return float64(p.shed.Load()) })
}

// keeps registers the gauges of caches.
func (m *Metrics) keeps(caches ...prometheus.Collector) error {
	for _, c := range caches {
		if err := m.reg.Register(c); err != nil {
			return fmt.Errorf("registering metrics: %w", err)
		}
	}
	return nil
}

// asked counts one review.
func (m *Metrics) asked(kind, result string, start time.Time) {
	m.reviews.WithLabelValues(kind, result).Inc()
	m.seconds.WithLabelValues(kind).Observe(time.Since(start).Seconds())
}

// count says how a question that the cache did not answer was answered.
func (l *lookups) count(joined bool) {
	if joined {
		l.joined.Inc()
		return
	}
	l.miss.Inc()
}
