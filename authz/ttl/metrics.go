package ttl

import "github.com/prometheus/client_golang/prometheus"

// Entries gives the metric of how many entries the cache holds. The name says
// in its label which cache it is, one of those of a process.
func (c *Cache[K, V]) Entries(name string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "glidepath_authz_cache_entries", ConstLabels: prometheus.Labels{"cache": name},
		Help: "Answers that are kept, those whose time has ended included until they make room.",
	}, func() float64 { return float64(c.Len()) })
}
