package extauthz_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	authv3 "github.com/envoyproxy/go-control-plane/envoy/service/auth/v3"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	dto "github.com/prometheus/client_model/go"
	"google.golang.org/grpc/codes"

	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/bucket"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/extauthz"
	"hangar.io/glidepath/internal/problem"
)

// limitedTo is a check on a route with limits; an empty one is left out.
func limitedTo(person, limit, callerLimit string) *authv3.CheckRequest {
	headers := map[string]string{}
	if person != "" {
		headers["x-glidepath-on-behalf-of"] = person
	}
	r := request("listLive", "GET", "/v1/apps/shop/live", headers)
	for name, value := range map[string]string{"limit": limit, "callerLimit": callerLimit} {
		if value != "" {
			r.GetAttributes().GetContextExtensions()[name] = value
		}
	}
	return r
}

// Two calls at once, one more every 1.5 s.
const pair = "defaults 2/3s 2"

func TestAnAllowedCallOverItsLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEdge(t, &cluster{caller: caller(t, "tower"), delegates: []string{"tower"}})
		ask := func(person string) *authv3.CheckResponse {
			return e.check(t, limitedTo(person, pair, "defaults 5/5s 5"))
		}
		for range 2 {
			if resp := ask("ada"); resp.GetOkResponse() == nil {
				t.Fatalf("refused within the limit: %v", resp)
			}
		}
		resp := ask("ada")
		if resp.GetStatus().GetCode() != int32(codes.ResourceExhausted) || resp.GetDeniedResponse().GetStatus().GetCode() != 429 {
			t.Fatalf("got %v", resp)
		}
		want := problem.Body{
			Rule: "GP-EDGE-429", Message: "too many calls on behalf of this person: the limit is 2 in 3s", Hint: "wait as long as Retry-After says",
		}
		if b := bodyOf(t, resp); b != want {
			t.Errorf("body %+v", b)
		}
		// Half a second is no whole one, so two are said.
		if h := headersOf(resp); h["retry-after"] != "2" || h["content-type"] != "application/json" || h["cache-control"] != "no-store" || len(h) != 3 {
			t.Errorf("headers %v", h)
		}
		m := metadataOf(resp)
		if len(m) != 6 || m["decision"] != "allow" || m["rule"] != want.Rule || m["error"] != want.Message ||
			m["caller"] != "tower" || m["onBehalfOf"] != "ada" || m["app"] != "shop" {
			t.Errorf("metadata %v", m)
		}
		if resp := ask("bob"); resp.GetOkResponse() == nil {
			t.Errorf("another person is refused: %v", resp)
		}
		if resp := ask(""); resp.GetOkResponse() == nil {
			t.Errorf("the caller for nobody is refused: %v", resp)
		}
		ask("cleo")
		if b := bodyOf(t, ask("dora")); b.Message != "too many calls by this caller in all: the limit is 5 in 5s" {
			t.Errorf("body %+v", b)
		}
		time.Sleep(2 * time.Second)
		if resp := ask("ada"); resp.GetOkResponse() == nil {
			t.Errorf("refused after what Retry-After said: %v", resp)
		}
		const checks = `
# HELP glidepath_authz_checks_total Calls decided, by decision and by the rule for which one was not served.
# TYPE glidepath_authz_checks_total counter
glidepath_authz_checks_total{decision="allow",rule=""} 6
glidepath_authz_checks_total{decision="allow",rule="GP-EDGE-429"} 2
`
		if err := testutil.GatherAndCompare(onlyAllowed{e.reg}, strings.NewReader(checks), "glidepath_authz_checks_total"); err != nil {
			t.Error(err)
		}
	})
}

func TestNoSpellingOfAPersonHasALimitOfItsOwn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newEdge(t, &cluster{caller: caller(t, "tower"), delegates: []string{"tower"}})
		for _, name := range []string{"ada", "Ada"} {
			if resp := e.check(t, limitedTo(name, pair, "")); resp.GetOkResponse() == nil {
				t.Fatalf("%s is refused within the limit: %v", name, resp)
			}
		}
		for _, name := range []string{"ADA", "people:ada", "People:Ada"} {
			if b := bodyOf(t, e.check(t, limitedTo(name, pair, ""))); b.Rule != "GP-EDGE-429" {
				t.Errorf("%s has a limit of its own: %+v", name, b)
			}
		}
	})
}

func TestTheLimitOfACallerThatActsForNobody(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := allowing(caller(t, "reader"))
		e := newEdge(t, c)
		for range 2 {
			e.check(t, limitedTo("", pair, ""))
		}
		if b := bodyOf(t, e.check(t, limitedTo("", pair, ""))); b.Message != "too many calls by this caller: the limit is 2 in 3s" {
			t.Errorf("body %+v", b)
		}
		if resp := e.check(t, limitedTo("", "", "")); resp.GetOkResponse() == nil {
			t.Errorf("refused on a route without a limit: %v", resp)
		}
		c.caller = caller(t, "writer")
		if resp := e.check(t, limitedTo("", pair, "")); resp.GetOkResponse() == nil {
			t.Errorf("another caller is refused: %v", resp)
		}
	})
}

func TestARefusedCallCountsForNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		reader := caller(t, "reader")
		refuse := true
		e := newEdge(t, decider(func(r decision.Request) decision.Decision {
			if refuse {
				return decision.Decision{Operation: r.Operation, Caller: reader, Refusal: problem.New(problem.AuthzDenied, "")}
			}
			return allowing(reader).Decide(t.Context(), r)
		}))
		for range 20 {
			if b := bodyOf(t, e.check(t, limitedTo("", pair, pair))); b.Rule != "GP-AUTHZ-001" {
				t.Fatalf("body %+v", b)
			}
		}
		refuse = false
		for range 2 {
			if resp := e.check(t, limitedTo("", pair, pair)); resp.GetOkResponse() == nil {
				t.Errorf("refusals used the limit up: %v", resp)
			}
		}
	})
}

func TestALimitThatCannotBeReadRefusesTheCall(t *testing.T) {
	e := newEdge(t, allowing(caller(t, "reader")))
	for _, r := range []*authv3.CheckRequest{
		limitedTo("", "defaults 0/1s 1", ""), limitedTo("", "", "much"),
	} {
		if b := bodyOf(t, e.check(t, r)); b.Rule != "GP-API-502" {
			t.Errorf("body %+v", b)
		}
	}
}

// onlyAllowed gathers the checks that were allowed.
type onlyAllowed struct{ prometheus.Gatherer }

func (g onlyAllowed) Gather() ([]*dto.MetricFamily, error) {
	families, err := g.Gatherer.Gather()
	for _, f := range families {
		f.Metric = slices.DeleteFunc(f.Metric, func(m *dto.Metric) bool {
			return !slices.ContainsFunc(m.GetLabel(), func(l *dto.LabelPair) bool { return l.GetValue() == "allow" })
		})
	}
	return families, err
}

// BenchmarkCount is what both limits of a route add to a check: to read them,
// and to count by them.
func BenchmarkCount(b *testing.B) {
	count := extauthz.NewCounter(bucket.New(bucket.Config{}), "defaults 1000000/1s 1000000", "operations.listLive 1000000/1s 1000000")
	d := &decision.Decision{Caller: &authn.Caller{Username: "system:serviceaccount:tower:tower"}, OnBehalfOf: "user:default/ada"}
	b.ReportAllocs()
	for b.Loop() {
		if ok, err := count(d); err != nil || !ok {
			b.Fatal(ok, err)
		}
	}
}
