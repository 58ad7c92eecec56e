package renewal

import "github.com/prometheus/client_golang/prometheus"

// metrics are those of a Keeper.
type metrics struct {
	answers *prometheus.CounterVec
	ended   *prometheus.CounterVec
	failed  prometheus.Counter
}

// The results of renewals.
const (
	resultGranted    = "granted"
	resultRefused    = "refused"
	resultUnanswered = "unanswered"
)

func newMetrics(reg prometheus.Registerer, open func() float64) *metrics {
	m := &metrics{
		answers: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "glidepath_stream_renewals_total", Help: "Renewals of streams, by what authz said.",
		}, []string{"result"}),
		ended: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "glidepath_streams_ended_total", Help: "Streams that were ended because they may not go on.",
		}, []string{"reason"}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "glidepath_stream_renewal_errors_total", Help: "Requests to authz that had no answer.",
		}),
	}
	for _, result := range []string{resultGranted, resultRefused, resultUnanswered} {
		m.answers.WithLabelValues(result)
	}
	for _, reason := range []Reason{Expired, Revoked, Lifetime, Unrenewed} {
		m.ended.WithLabelValues(string(reason))
	}
	reg.MustRegister(m.answers, m.ended, m.failed, prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "glidepath_streams_open", Help: "Streams that are kept open by renewals.",
	}, open))
	return m
}
