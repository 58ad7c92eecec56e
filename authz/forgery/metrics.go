package forgery

import (
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promauto"
)

// metrics counts what was found of tokens that name the cluster's issuer.
type metrics struct {
	genuine, forged, expired, noKeys, hidden, unknownKey, tooMany prometheus.Counter
}

func newMetrics(reg prometheus.Registerer) *metrics {
	found := promauto.With(reg).NewCounterVec(prometheus.CounterOpts{
		Name: "glidepath_authz_signatures_total",
		Help: "Tokens of the cluster's own issuer that were not known, by what their signature told.",
	}, []string{"result"})
	return &metrics{
		genuine: found.WithLabelValues("genuine"), forged: found.WithLabelValues("forged"), expired: found.WithLabelValues("expired"),
		noKeys: found.WithLabelValues("no_keys"), hidden: found.WithLabelValues("hidden_key"),
		unknownKey: found.WithLabelValues("unknown_key"), tooMany: found.WithLabelValues("too_many_unknown"),
	}
}
