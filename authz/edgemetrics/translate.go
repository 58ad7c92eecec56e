package edgemetrics

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
)

// The API's metrics, as it documents them. Descriptions do not change.
var (
	requestsDesc = prometheus.NewDesc("glidepath_api_requests_total",
		"Calls answered, labelled as the audit line is.", []string{"op", "tier", "code", "decision"}, nil)
	durationDesc = prometheus.NewDesc("glidepath_api_request_duration_seconds",
		"Time to answer a call. Streams, and calls whose caller left, are not in it.", []string{"op", "tier"}, nil)
	inFlightDesc = prometheus.NewDesc("glidepath_api_in_flight_requests",
		"Calls being answered now. Of streams, those that are open.", []string{"op"}, nil)
)

// callLabels are the labels of one counter.
type callLabels struct{ op, tier, code, decision string }

// requestCounters adds up Envoy's counters by the labels that the API gives
// them: two of Envoy's can be one of the API's.
func requestCounters(f *dto.MetricFamily) ([]prometheus.Metric, error) {
	sums := map[callLabels]float64{}
	for _, m := range f.GetMetric() {
		if m.GetCounter() == nil {
			return nil, errors.New("Envoy's requests are not counters")
		}
		l := labels(m)
		sums[callLabels{op: l["op"], tier: l["tier"], code: code(l["code"]), decision: decision(l["decision"])}] += m.GetCounter().GetValue()
	}
	keys := slices.SortedFunc(maps.Keys(sums), func(a, b callLabels) int {
		return cmp.Or(cmp.Compare(a.op, b.op), cmp.Compare(a.code, b.code), cmp.Compare(a.decision, b.decision), cmp.Compare(a.tier, b.tier))
	})
	var out []prometheus.Metric
	for _, k := range keys {
		m, err := prometheus.NewConstMetric(requestsDesc, prometheus.CounterValue, sums[k], k.op, k.tier, k.code, k.decision)
		if err != nil {
			return nil, fmt.Errorf("counter of %s: %w", k.op, err)
		}
		out = append(out, m)
	}
	return out, nil
}

// code names the status of a call. For one whose caller left before an answer
// Envoy says 0, or the interim status that it had sent; the API and its audit
// lines say 499.
func code(envoy string) string {
	if len(envoy) != 3 || envoy[0] == '1' {
		return "499"
	}
	return envoy
}

// decision names the decision on a call, which is public where the edge has
// none to ask for. Without one, authz was not asked or did not answer, and the
// call was refused.
func decision(envoy string) string {
	switch envoy {
	case "allow", "public":
		return envoy
	}
	return "deny"
}

// durationHistograms turns Envoy's milliseconds into seconds.
func durationHistograms(f *dto.MetricFamily) ([]prometheus.Metric, error) {
	var out []prometheus.Metric
	for _, m := range f.GetMetric() {
		h := m.GetHistogram()
		if h == nil {
			return nil, errors.New("Envoy's durations are no histogram")
		}
		buckets := map[float64]uint64{}
		for _, b := range h.GetBucket() {
			if le := b.GetUpperBound(); !math.IsInf(le, 1) {
				buckets[le/1000] = b.GetCumulativeCount()
			}
		}
		l := labels(m)
		metric, err := prometheus.NewConstHistogram(durationDesc, h.GetSampleCount(), h.GetSampleSum()/1000, buckets, l["op"], l["tier"])
		if err != nil {
			return nil, fmt.Errorf("histogram of %s: %w", l["op"], err)
		}
		out = append(out, metric)
	}
	return out, nil
}

func inFlightGauges(f *dto.MetricFamily) ([]prometheus.Metric, error) {
	var out []prometheus.Metric
	for _, m := range f.GetMetric() {
		if m.GetGauge() == nil {
			return nil, errors.New("Envoy's calls under way are no gauge")
		}
		op := labels(m)["op"]
		metric, err := prometheus.NewConstMetric(inFlightDesc, prometheus.GaugeValue, m.GetGauge().GetValue(), op)
		if err != nil {
			return nil, fmt.Errorf("gauge of %s: %w", op, err)
		}
		out = append(out, metric)
	}
	return out, nil
}

func labels(m *dto.Metric) map[string]string {
	out := make(map[string]string, len(m.GetLabel()))
	for _, l := range m.GetLabel() {
		out[l.GetName()] = l.GetValue()
	}
	return out
}
