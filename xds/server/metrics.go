package server

import "github.com/prometheus/client_golang/prometheus"

// Metrics are what the server counts. Make one with NewMetrics.
type Metrics struct {
	envoys    prometheus.Gauge
	responses *prometheus.CounterVec
	stale     prometheus.Gauge
}

// NewMetrics registers the metrics.
func NewMetrics(r prometheus.Registerer) *Metrics {
	m := &Metrics{
		envoys: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "glidepath_xds_envoys", Help: "Envoys that are connected.",
		}),
		responses: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "glidepath_xds_responses_total", Help: "What Envoys said to what they were sent: taken or refused.",
		}, []string{"result"}),
		stale: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "glidepath_xds_stale", Help: "1 while the present configuration cannot be built or an Envoy refused it, so that an older one is served or none.",
		}),
	}
	r.MustRegister(m.envoys, m.responses, m.stale)
	return m
}
