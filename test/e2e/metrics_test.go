package e2e_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// scrape reads a metrics listener.
func scrape(t *testing.T, url string) map[string]*dto.MetricFamily {
	t.Helper()
	res, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	p := expfmt.NewTextParser(model.UTF8Validation)
	families, err := p.TextToMetricFamilies(io.LimitReader(res.Body, 16<<20))
	if err != nil {
		t.Fatal(err)
	}
	return families
}

// labelled finds the metric of a family with these labels, exactly.
func labelled(f *dto.MetricFamily, labels map[string]string) *dto.Metric {
	for _, m := range f.GetMetric() {
		match := len(m.GetLabel()) == len(labels)
		for _, l := range m.GetLabel() {
			match = match && labels[l.GetName()] == l.GetValue()
		}
		if match {
			return m
		}
	}
	return nil
}

func count(t *testing.T, labels map[string]string) float64 {
	t.Helper()
	return labelled(scrape(t, gw.Edges[0].AuthzMetrics)["glidepath_api_requests_total"], labels).GetCounter().GetValue()
}

func TestCallsAreCountedAsTheAuditLineNamesThem(t *testing.T) {
	allowed := map[string]string{"op": "listLive", "tier": "T0", "code": "200", "decision": "allow"}
	denied := map[string]string{"op": "listLive", "tier": "T0", "code": "403", "decision": "deny"}
	a, d := count(t, allowed), count(t, denied)
	for range 3 {
		get(t, "/v1/apps/gate-api/live", as("reader"))
	}
	get(t, "/v1/apps/gate-api/live", as("stranger"))
	eventually(t, "the calls are counted", func() bool { return count(t, allowed) == a+3 && count(t, denied) == d+1 })
	h := labelled(scrape(t, gw.Edges[0].AuthzMetrics)["glidepath_api_request_duration_seconds"], map[string]string{"op": "listLive", "tier": "T0"})
	if h.GetHistogram().GetSampleCount() == 0 {
		t.Errorf("no duration: %v", h)
	}
	for _, b := range h.GetHistogram().GetBucket() {
		if b.GetUpperBound() == 2.5 {
			return
		}
	}
	t.Error("no bucket ends at 2.5 s, which the latency objective is measured at")
}

func TestTheMetricsListenerServesNoRoute(t *testing.T) {
	base := strings.TrimSuffix(gw.Edges[0].AuthzMetrics, "/metrics")
	for _, path := range []string{"/v1/whoami", "/", "/healthz"} {
		res, err := http.Get(base + path)
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
		if res.StatusCode != http.StatusNotFound {
			t.Errorf("%s: %d", path, res.StatusCode)
		}
	}
}
