package bucket

import "github.com/prometheus/client_golang/prometheus"

// MustRegister registers the metrics of a Table.
func (t *Table) MustRegister(reg prometheus.Registerer) {
	reg.MustRegister(
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "glidepath_authz_rate_limit_buckets",
			Help: "Callers and people of whom calls are remembered, under each limit by itself.",
		}, func() float64 { return float64(t.Len()) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "glidepath_authz_rate_limit_crowded_total",
			Help: "Calls counted in a bucket that many share, because there was no room for one of their own.",
		}, func() float64 { return float64(t.Crowded()) }),
	)
}
