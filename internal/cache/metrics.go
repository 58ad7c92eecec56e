package cache

import (
	"errors"
	"fmt"

	"github.com/prometheus/client_golang/prometheus"
)

// result says where the outcome of a call came from.
type result string

const (
	resultLocal  result = "local"  // this process had it
	resultShared result = "shared" // another replica read it
	resultFill   result = "fill"   // the source was read, for this call or one that it joined
	resultError  result = "error"
	resultLeft   result = "left" // the caller did not wait for it
)

type metrics struct {
	calls      *prometheus.CounterVec
	reads      *prometheus.CounterVec
	unreadable prometheus.Counter
	localBytes prometheus.Gauge
	localCount prometheus.Gauge
}

func newMetrics(reg prometheus.Registerer, cache string) (*metrics, error) {
	labels := prometheus.Labels{"cache": cache}
	m := &metrics{
		calls: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "glidepath_cache_gets_total", ConstLabels: labels,
			Help: "Calls for a value, by where it came from: local, shared (Redis), fill (the source), error, or left (the caller did not wait).",
		}, []string{"result"}),
		reads: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "glidepath_cache_fills_total", ConstLabels: labels,
			Help: "Reads of the source by this process, by outcome: ok or error.",
		}, []string{"outcome"}),
		unreadable: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "glidepath_cache_unreadable_total", ConstLabels: labels,
			Help: "Values in Redis that did not open or decode and counted as absent.",
		}),
		localBytes: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "glidepath_cache_local_bytes", ConstLabels: labels,
			Help: "Bytes of values that this process keeps.",
		}),
		localCount: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "glidepath_cache_local_entries", ConstLabels: labels,
			Help: "Values that this process keeps.",
		}),
	}
	for _, r := range []result{resultLocal, resultShared, resultFill, resultError, resultLeft} {
		m.calls.WithLabelValues(string(r))
	}
	for _, outcome := range []string{"ok", "error"} {
		m.reads.WithLabelValues(outcome)
	}
	return m, register(reg, m.calls, m.reads, m.unreadable, m.localBytes, m.localCount)
}

func (m *metrics) gets(r result) { m.calls.WithLabelValues(string(r)).Inc() }

func (m *metrics) fills(err error) {
	outcome := "ok"
	if err != nil {
		outcome = "error"
	}
	m.reads.WithLabelValues(outcome).Inc()
}

func register(reg prometheus.Registerer, all ...prometheus.Collector) error {
	var faults []error
	for _, c := range all {
		faults = append(faults, reg.Register(c))
	}
	if err := errors.Join(faults...); err != nil {
		return fmt.Errorf("registering metrics: %w", err)
	}
	return nil
}
