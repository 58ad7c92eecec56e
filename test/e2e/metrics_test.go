package e2e_test

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"hangar.io/glidepath/authz"
	"hangar.io/glidepath/services/livehub"
	"hangar.io/glidepath/services/runs"
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
	var h *dto.Metric
	eventually(t, "the durations are there", func() bool { // Envoy adds them up once a second
		h = labelled(scrape(t, gw.Edges[0].AuthzMetrics)["glidepath_api_request_duration_seconds"], map[string]string{"op": "listLive", "tier": "T0"})
		return h.GetHistogram().GetSampleCount() > 0
	})
	for _, b := range h.GetHistogram().GetBucket() {
		if b.GetUpperBound() == 2.5 {
			return
		}
	}
	t.Error("no bucket ends at 2.5 s, which the latency objective is measured at")
}

// rule: R418
func TestTheCountersRiseByWhatTheAuditLinesSay(t *testing.T) {
	// Those that are called here: a stream that another test has left may end meanwhile.
	called := []string{"listLiveRuns", "getContract", "_unmatched"}
	before, lines := requests(t, called), len(auditLines(t))
	get(t, "/v1/live", as("reader"))
	get(t, "/v1/live", as("reader"))
	get(t, "/v1/live", as("stranger"))
	get(t, "/v1/live?limit=0", as("reader"))
	get(t, "/v1/contract")
	get(t, "/v1/nothing", as("reader"))
	var said map[[4]string]float64
	eventually(t, "the counters have risen by what the lines say", func() bool {
		said = map[[4]string]float64{}
		for _, l := range auditLines(t)[lines:] {
			op, _ := l["op"].(string)
			if !slices.Contains(called, op) {
				continue
			}
			tier, _ := l["tier"].(string)
			said[[4]string{op, tier, fmt.Sprint(l["status"]), l["decision"].(string)}]++
		}
		risen := requests(t, called)
		for key, n := range before {
			if risen[key] -= n; risen[key] == 0 {
				delete(risen, key)
			}
		}
		return len(said) == 5 && maps.Equal(risen, said)
	})
	if n := said[[4]string{"listLiveRuns", "T0", "200", "allow"}]; n != 2 {
		t.Errorf("%v calls of listLiveRuns are written as answered, want 2: %v", n, said)
	}
}

// requests gives the counts of calls of some operations by op, tier, code and decision.
func requests(t *testing.T, ops []string) map[[4]string]float64 {
	t.Helper()
	out := map[[4]string]float64{}
	for _, m := range scrape(t, gw.Edges[0].AuthzMetrics)["glidepath_api_requests_total"].GetMetric() {
		if len(m.GetLabel()) != 4 {
			t.Fatalf("labels %v", m.GetLabel())
		}
		var key [4]string
		for _, l := range m.GetLabel() {
			key[slices.Index([]string{"op", "tier", "code", "decision"}, l.GetName())] = l.GetValue()
		}
		if slices.Contains(ops, key[0]) {
			out[key] = m.GetCounter().GetValue()
		}
	}
	return out
}

// rule: R424, R425
func TestEveryProcessOfTheAPINamesItsContractAndItself(t *testing.T) {
	var contract struct {
		Version int `json:"contractVersion"`
	}
	if err := json.Unmarshal(get(t, "/v1/contract", as("stranger")).body, &contract); err != nil {
		t.Fatal(err)
	}
	for _, url := range []string{gw.Edges[0].AuthzMetrics, gw.Livehubs[0].Metrics, gw.Runs[0].Metrics} {
		families := scrape(t, url)
		info := families["glidepath_api_contract_info"]
		m := labelled(info, map[string]string{"contract_version": strconv.Itoa(contract.Version)})
		if len(info.GetMetric()) != 1 || m.GetGauge().GetValue() != 1 {
			t.Errorf("%s: %v", url, info)
		}
		for _, name := range []string{"go_goroutines", "process_resident_memory_bytes"} {
			if len(families[name].GetMetric()) != 1 {
				t.Errorf("%s: no %s", url, name)
			}
		}
	}
}

// rule: R416
func TestTheMetricsListenerServesMetricsAndNoRoute(t *testing.T) {
	for _, config := range []reflect.Type{reflect.TypeFor[authz.Config](), reflect.TypeFor[livehub.Config](), reflect.TypeFor[runs.Config]()} {
		field, ok := config.FieldByName("MetricsListen")
		if !ok || field.Tag.Get("env") != "METRICS_LISTEN" || field.Tag.Get("default") != ":9090" {
			t.Errorf("%s: %s", config, field.Tag)
		}
	}
	if a := get(t, "/metrics", as("reader")); a.status != http.StatusNotFound {
		t.Errorf("the edge answers %d to /metrics", a.status)
	}
	for _, url := range []string{gw.Edges[0].AuthzMetrics, gw.Livehubs[0].Metrics, gw.Runs[0].Metrics} {
		base := strings.TrimSuffix(url, "/metrics")
		for path, want := range map[string]int{
			"/metrics": http.StatusOK, "/v1/whoami": http.StatusNotFound, "/": http.StatusNotFound, "/healthz": http.StatusNotFound,
		} {
			res, err := http.Get(base + path) // without a token
			if err != nil {
				t.Fatal(err)
			}
			_ = res.Body.Close()
			if res.StatusCode != want {
				t.Errorf("%s: %d, want %d", path, res.StatusCode, want)
			}
		}
	}
}
