package jwks

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// Metrics tells about the keys of issuers.
type Metrics struct {
	reg     prometheus.Registerer
	fetches *prometheus.CounterVec
}

// NewMetrics registers them. One Metrics serves every Set of a process; each
// needs a name of its own.
func NewMetrics(reg prometheus.Registerer) *Metrics {
	return &Metrics{reg: reg, fetches: promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_authz_issuer_key_reads_total",
		Help: "Readings of an issuer's keys. One that failed changes no keys.",
	}, []string{"issuer", "result"})}
}

// metrics are those of one Set.
type metrics struct{ read, failed prometheus.Counter }

func (m *Metrics) of(name string, s *Set) metrics {
	if m == nil {
		m = NewMetrics(prometheus.NewRegistry())
	}
	f := promauto.With(m.reg)
	labels := prometheus.Labels{"issuer": name}
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "glidepath_authz_issuer_keys", ConstLabels: labels,
		Help: "Keys of an issuer that tokens are verified with.",
	}, func() float64 { return float64(s.current().size()) })
	f.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "glidepath_authz_issuer_keys_age_seconds", ConstLabels: labels,
		Help: "Time since an issuer's keys were last read, or since the start while they never were.",
	}, s.age(time.Now()))
	return metrics{read: m.fetches.WithLabelValues(name, "read"), failed: m.fetches.WithLabelValues(name, "failed")}
}

func (s *Set) age(start time.Time) func() float64 {
	return func() float64 {
		since := start
		if keys := s.current(); keys != nil {
			since = keys.read
		}
		return time.Since(since).Seconds()
	}
}
