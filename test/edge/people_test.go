package edge

import (
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/devenv/pki"
	"hangar.io/glidepath/internal/renewal"
	"hangar.io/glidepath/xds"
)

// people is the host of the route for people in these tests.
const people = "glidepath-api.example"

// startPeople starts an edge that has a route for people, and gives the address
// of that route.
func startPeople(t *testing.T, s setup) (*edge, string) {
	t.Helper()
	addr, other := port(t), s.options
	s.options = func(o *xds.Options) {
		o.PeopleListen, o.PeopleHosts = addr, []string{people}
		if other != nil {
			other(o)
		}
	}
	e := start(t, s)
	eventually(t, "the route for people listens", func() bool {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
	return e, addr
}

// by gives the same edge by another address: what is sent with it comes in
// there.
func (e *edge) by(addr string) *edge {
	out := *e
	out.addr, out.url = addr, strings.Replace(e.url, e.addr, addr, 1)
	return &out
}

func plainRequest(method, path, host string, more ...string) string {
	return method + " " + path + " HTTP/1.1\r\nHost: " + host + "\r\nConnection: close\r\n" + strings.Join(more, "") + "\r\n"
}

// rule: R458
func TestThePeoplesRouteServesTheAPIUnderItsHostsAlone(t *testing.T) {
	t.Parallel()
	e, addr := startPeople(t, setup{planned: true})
	way := e.by(addr)
	for name, tt := range map[string]struct {
		path, host string
		op         string // "" is none
	}{
		"an operation":                       {"/v1/apps/shop/live", people, "listLive"},
		"one that authz answers":             {"/v1/whoami", people, "whoami"},
		"one of another backend":             {"/v1/apps/shop/runs", people, "listRuns"},
		"the host in upper case":             {"/v1/live", strings.ToUpper(people), "listLiveRuns"},
		"the host with the Gateway's port":   {"/v1/live", people + ":8443", "listLiveRuns"},
		"a path that is made canonical":      {"/metrics/..//v1/./live", people, "listLiveRuns"},
		"the root":                           {"/", people, ""},
		"the API's root":                     {"/v1", people, ""},
		"the API's root with a slash":        {"/v1/", people, ""},
		"the probe of life":                  {"/healthz", people, ""},
		"the probe of readiness":             {"/readyz", people, ""},
		"the metrics":                        {"/metrics", people, ""},
		"the admin interface's page":         {"/config_dump", people, ""},
		"the admin interface's statistics":   {"/stats/prometheus", people, ""},
		"the internal renewals":              {renewal.RenewPath, people, ""},
		"the internal epoch":                 {renewal.EpochPath, people, ""},
		"the internal events":                {"/internal/events/tap", people, ""},
		"internal below the API":             {"/v1/internal/events", people, ""},
		"internal by way of the API":         {"/v1/../internal/events", people, ""},
		"an operation of the edge's address": {"/v1/live", e.addr, ""},
		"an operation of the Service's name": {"/v1/live", "glidepath-api.platform-system.svc.cluster.local:8080", ""},
		"a host that begins with ours":       {"/v1/live", people + ".evil.example", ""},
		"a host that ends with ours":         {"/v1/live", "evil-" + people, ""},
		"our host with a dot behind":         {"/v1/live", people + ".", ""},
		"no host":                            {"/v1/live", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			resp := way.send(t, plainRequest("GET", tt.path, tt.host))
			got := e.lineOf(t, resp)
			if tt.op == "" {
				got.want(t, line{"op": "_unmatched", "tier": nil, "decision": "deny", "rule": "GP-EDGE-404", "status": 404.0})
				return
			}
			if resp.StatusCode != http.StatusOK {
				t.Errorf("status %d", resp.StatusCode)
			}
			got.want(t, line{"op": tt.op, "tier": "T0", "decision": "allow", "rule": nil, "status": 200.0})
		})
	}
}

// Tickets are for authz's internal listener alone, on neither way in.
func TestNobodyRenewsStreamsByWayOfTheEdge(t *testing.T) {
	t.Parallel()
	e, addr := startPeople(t, setup{planned: true})
	for way, at := range map[string]struct {
		edge *edge
		host string
	}{"the edge": {e, e.addr}, "the route for people": {e.by(addr), people}} {
		for _, path := range []string{renewal.RenewPath, renewal.EpochPath} {
			for _, method := range []string{http.MethodGet, http.MethodPost} {
				t.Run(strings.Join([]string{way, method, path}, " "), func(t *testing.T) {
					t.Parallel()
					resp := at.edge.send(t, plainRequest(method, path, at.host, "Content-Length: 0\r\n"))
					at.edge.lineOf(t, resp).want(t, line{"op": "_unmatched", "decision": "deny", "rule": "GP-EDGE-404", "status": 404.0})
				})
			}
		}
	}
}

// The route for people and the edge itself answer in the same words and write
// the same line, refusals by Envoy included.
//
// rule: R457
func TestThePeoplesRouteAnswersAsTheEdgeItselfDoes(t *testing.T) {
	t.Parallel()
	e, addr := startPeople(t, setup{planned: true})
	way := e.by(addr)
	for name, req := range map[string]string{
		"a read":                        plainRequest("GET", "/v1/apps/shop/live?limit=1", people),
		"a read that is refused":        plainRequest("GET", "/v1/apps/shop/live", people, "Authorization: "+tokenDeny+"\r\n"),
		"a write":                       plainRequest("POST", "/v1/apps/shop/pipelineruns/x/cancel?do=audit", people),
		"a write that is refused":       plainRequest("POST", "/v1/apps/shop/pipelineruns/x/cancel", people, "Authorization: "+tokenDeny+"\r\n"),
		"a failure of the backend":      plainRequest("GET", "/v1/live?do=fail", people),
		"an answer that breaks off":     plainRequest("GET", "/v1/live?do=garbage", people),
		"a path without an operation":   plainRequest("GET", "/nothing", people),
		"another method":                plainRequest("DELETE", "/v1/live", people),
		"an escape in the path":         plainRequest("GET", "/v1/apps/a%2fb/live", people),
		"a host that is none":           plainRequest("GET", "/v1/live", "a,b"),
		"a call that calls itself gRPC": plainRequest("POST", "/v1/live", people, "Content-Type: application/grpc\r\n"),
		"headers of the edge's own":     plainRequest("GET", "/v1/live", people, "X-Glidepath-Identity: forged\r\nX-Request-Id: forged\r\nX-Glidepath-Audit: forged\r\n"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := e.send(t, req), way.send(t, req)
			lineA, lineB := e.lineOf(t, a), e.lineOf(t, b)
			wantAlike(t, a, b)
			for _, own := range []string{"time", "ms", "traceId", "requestId"} {
				delete(lineA, own)
				delete(lineB, own)
			}
			if len(lineA) != len(lineB) {
				t.Errorf("the lines differ: %v, %v", lineA, lineB)
			}
			lineB.want(t, lineA)
		})
	}
}

// wantAlike compares two answers to what was the same call but for its way, its
// ids and its time.
func wantAlike(t *testing.T, a, b *http.Response) {
	t.Helper()
	if a.StatusCode != b.StatusCode {
		t.Errorf("status %d and %d", a.StatusCode, b.StatusCode)
	}
	plain := func(r *http.Response) string {
		var own []string
		for name, value := range map[string]string{"X-Glidepath-Trace-Id": r.Header.Get("X-Glidepath-Trace-Id")} {
			own = append(own, value, name)
		}
		return strings.NewReplacer(own...).Replace(dropLines(string(readAll(t, r)), "Traceparent", "X-Request-Id"))
	}
	if x, y := plain(a), plain(b); x != y {
		t.Errorf("the bodies differ:\n%s\n%s", x, y)
	}
	for _, h := range []http.Header{a.Header, b.Header} {
		for _, own := range []string{"Date", "X-Glidepath-Trace-Id", "Content-Length", "X-Envoy-Upstream-Service-Time"} {
			h.Del(own)
		}
	}
	for name := range a.Header {
		if !slices.Equal(a.Header[name], b.Header[name]) {
			t.Errorf("%s is %q and %q", name, a.Header[name], b.Header[name])
		}
	}
	if len(a.Header) != len(b.Header) {
		t.Errorf("headers %v and %v", a.Header, b.Header)
	}
}

// dropLines takes the values of these keys out of a body that is the headers
// which the backend of these tests got.
func dropLines(body string, keys ...string) string {
	for _, key := range keys {
		before, rest, ok := strings.Cut(body, `"`+key+`":[`)
		if !ok {
			continue
		}
		_, after, _ := strings.Cut(rest, "]")
		body = before + after
	}
	return body
}

// rule: R458
func TestAnEdgeWithoutARouteForPeopleListensOnOneAddress(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	if n := strings.Count(e.admin(t, "/listeners"), "127.0.0.1"); n != 1 {
		t.Errorf("%d listeners: %s", n, e.admin(t, "/listeners"))
	}
}

func TestCallsOnThePeoplesRouteAreCountedWithAllOthers(t *testing.T) {
	t.Parallel()
	e, addr := startPeople(t, setup{})
	for _, way := range []*edge{e, e.by(addr), e.by(addr)} {
		if resp := way.send(t, plainRequest("GET", "/v1/live", people)); resp.StatusCode != http.StatusOK {
			t.Fatalf("status %d", resp.StatusCode)
		}
	}
	eventually(t, "the three calls are counted together", func() bool {
		return strings.Contains(e.admin(t, "/stats/prometheus"), `envoy_glidepath_api_requests{op="listLiveRuns",tier="T0",code="200",decision="allow"} 3`)
	})
}

// The strict ledger of decisions holds on this way in as on the other.
func TestNothingUndecidedPassesThePeoplesRoute(t *testing.T) {
	t.Parallel()
	e, addr := startPeople(t, setup{planned: true})
	e.authz.ledger.Store(&ledger{allowed: map[string]allow{}})
	way, answers := e.by(addr), 0
	for _, token := range []string{"VALID", "forged", ""} {
		for _, host := range []string{people, "edge", people + ":1"} {
			for _, path := range []string{"/v1/live", "/v1/apps/shop/live", "/internal/x", "/v1//whoami", "/v1/live/../apps/shop/runs"} {
				wantSound(t, way.send(t, plainRequest("GET", path, host, "Authorization: Bearer "+token+"\r\nX-Glidepath-Identity: allow-1\r\n")))
				answers++
			}
		}
	}
	e.client = &http.Client{Transport: good{e.client.Transport}} // the fence's call needs the token
	if n := e.wantAllPaired(t, answers); n != 9 {                // 4 paths of the API under 2 spellings of the host, and the fence
		t.Errorf("%d calls reached a backend", n)
	}
}

// good sends the one good token.
type good struct{ http.RoundTripper }

func (g good) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+goodToken)
	return g.RoundTripper.RoundTrip(r)
}

func TestOverTLSThePeoplesRouteHasTLSToo(t *testing.T) {
	t.Parallel()
	addr := port(t)
	e := startTLS(t, func(s *setup, _ *pki.Mount) {
		with := s.options
		s.options = func(o *xds.Options) {
			with(o)
			o.PeopleListen, o.PeopleHosts = addr, []string{people}
		}
	})
	var resp *http.Response
	eventually(t, "the route for people answers over TLS", func() bool {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+addr+"/v1/live", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		req.Host = people
		resp, err = e.client.Do(req)
		return err == nil
	})
	if readAll(t, resp); resp.StatusCode != http.StatusOK {
		t.Errorf("status %d", resp.StatusCode)
	}
	if answers := e.by(addr).halfClosed(t, plainRequest("GET", "/v1/live", people)); len(answers) > 0 {
		t.Errorf("answered without TLS: %v", answers)
	}
}
