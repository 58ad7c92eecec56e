package extauthz_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/internal/problem"
)

func TestTheMetricsOfChecks(t *testing.T) {
	refusal := problem.New(problem.AuthzDenied, "")
	e := newEdge(t, decider(func(r decision.Request) decision.Decision {
		if refusal == nil {
			return allowing(caller(t, "reader")).Decide(t.Context(), r)
		}
		return decision.Decision{Refusal: refusal}
	}))
	check := func() { e.check(t, request("listLive", "GET", "/v1/apps/shop/live", nil)) }
	check()
	check()
	refusal = &problem.Error{Rule: problem.Rule{ID: "GP-X"}}
	check()
	refusal = nil
	check()
	families, err := e.reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			if f.GetName() != "glidepath_authz_checks_total" || m.GetCounter().GetValue() == 0 {
				continue
			}
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetValue())
			}
			got[strings.Join(labels, " ")] = m.GetCounter().GetValue()
		}
	}
	if want := map[string]float64{"allow ": 1, "deny GP-AUTHZ-001": 2, "deny ": 1}; !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	for _, f := range families {
		if f.GetName() == "glidepath_authz_cache_entries" && (len(f.GetMetric()) != 1 || f.GetMetric()[0].GetGauge().GetValue() != 1) {
			t.Errorf("the answers kept are shown as %v", f.GetMetric())
		}
	}
	if problems, err := testutil.GatherAndLint(e.reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}
