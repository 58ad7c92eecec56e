package oidc

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"

	"hangar.io/glidepath/internal/problem"
)

// metrics count verdicts on people's tokens.
type metrics struct {
	accepted, remembered, refused, notAllowed, failed prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) metrics {
	v := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_authz_id_tokens_total",
		Help: "People's ID tokens by verdict: accepted, accepted a moment ago (remembered), refused, of a person who may not sign in (not_allowed), or without a verdict for want of keys or of a turn to verify it (failed).",
	}, []string{"result"})
	return metrics{
		accepted: v.WithLabelValues("accepted"), remembered: v.WithLabelValues("remembered"), refused: v.WithLabelValues("refused"),
		notAllowed: v.WithLabelValues("not_allowed"), failed: v.WithLabelValues("failed"),
	}
}

func (m *metrics) count(err error) {
	if err == nil {
		m.accepted.Inc()
		return
	}
	switch problem.From(err).Rule.ID {
	case problem.AuthBadToken.ID:
		m.refused.Inc()
	case problem.AuthPersonNotAllowed.ID:
		m.notAllowed.Inc()
	default:
		m.failed.Inc()
	}
}
