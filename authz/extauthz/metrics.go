package extauthz

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hangar.io/glidepath/internal/problem"
)

// Metrics counts checks.
type Metrics struct {
	reg prometheus.Registerer

	allowed prometheus.Counter
	limited prometheus.Counter            // allowed, and over a limit
	refused map[string]prometheus.Counter // by rule
	other   prometheus.Counter
	panics  prometheus.Counter
	seconds prometheus.Histogram
}

// NewMetrics registers the metrics of checks.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	f := promauto.With(reg)
	checks := f.NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_authz_checks_total",
		Help: "Calls decided, by decision and by the rule for which one was not served.",
	}, []string{"decision", "rule"})
	m := &Metrics{
		reg:     reg,
		allowed: checks.WithLabelValues("allow", ""),
		limited: checks.WithLabelValues("allow", problem.EdgeTooManyRequests.ID),
		refused: map[string]prometheus.Counter{},
		other:   checks.WithLabelValues("deny", ""),
		panics: f.NewCounter(prometheus.CounterOpts{
			Name: "glidepath_authz_panics_total",
			Help: "Checks that ended in a panic. Their calls were refused.",
		}),
		seconds: f.NewHistogram(prometheus.HistogramOpts{
			Name:    "glidepath_authz_check_duration_seconds",
			Help:    "Time to decide a call.",
			Buckets: []float64{.00001, .000025, .00005, .0001, .00025, .001, .0025, .005, .01, .025, .1, .5, 1, 2, 2.5},
		}),
	}
	for _, r := range problem.All() {
		m.refused[r.ID] = checks.WithLabelValues("deny", r.ID)
	}
	return m
}

func (m *Metrics) refuse(p *problem.Error) {
	if c, ok := m.refused[p.Rule.ID]; ok {
		c.Inc()
		return
	}
	m.other.Inc()
}
