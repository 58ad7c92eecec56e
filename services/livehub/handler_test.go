package livehub

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
)

// targets of each operation, with the identity that fits.
var targets = map[string]struct {
	target string
	claims func() identity.Claims
}{
	"listLive":         {"/v1/apps/shop/live", func() identity.Claims { return claims("listLive", aboutShop) }},
	"getLiveLogs":      {"/v1/apps/shop/live/taskruns/task/logs/step-a", func() identity.Claims { return claims("getLiveLogs", aboutShop) }},
	"streamLiveRuns":   {"/v1/apps/shop/live/stream", func() identity.Claims { return claims("streamLiveRuns", aboutShop) }},
	"listLiveRuns":     {"/v1/live", func() identity.Claims { return claims("listLiveRuns") }},
	"listLiveTaskRuns": {"/v1/live/taskruns?pipelineRuns=a", func() identity.Claims { return claims("listLiveTaskRuns") }},
}

func TestTheOperationsServedAreThoseOfTheContract(t *testing.T) {
	p := newReplica(t, newCluster(t), "")
	for _, op := range api.Operations() {
		path := strings.NewReplacer("{app}", "shop", "{taskRun}", "t", "{container}", "c", "{result}", "r", "{name}", "n", "{id}", "i", "{env}", "e", "{chainId}", "c").Replace(op.Path)
		r := httptest.NewRequest(op.Method, path, nil)
		w := httptest.NewRecorder()
		p.handler.ServeHTTP(w, r)
		got := response{Response: w.Result(), body: w.Body.Bytes()}
		if _, served := targets[op.ID]; served != (op.Backend == backend && !op.Planned) {
			t.Errorf("%s is tested: %v", op.ID, served)
		} else if served {
			got.expectProblem(t, problem.EdgeUnauthorized) // it is there, behind the identity
		} else {
			got.expectProblem(t, problem.EdgeNotFound)
		}
	}
	for id, call := range targets {
		if id != "streamLiveRuns" { // it does not end by itself, and has tests of its own
			p.do(p.request(call.target, call.claims())).ok(t)
		}
	}
}

func TestWhatDidNotPassTheEdgeIsRefused(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	foreign := newReplica(t, newCluster(t), "")
	expired := func(c *identity.Claims) {
		c.IssuedAt, c.ExpiresAt = identity.Times(time.Now().Add(-2*time.Minute), time.Minute)
	}
	for id, call := range targets {
		good := call.claims()
		for name, change := range map[string]func(r *http.Request){
			"no identity":          func(r *http.Request) { r.Header.Del(identity.Header) },
			"an empty identity":    func(r *http.Request) { r.Header.Set(identity.Header, "") },
			"garbage":              func(r *http.Request) { r.Header.Set(identity.Header, "a.b.c") },
			"two identities":       func(r *http.Request) { r.Header.Add(identity.Header, r.Header.Get(identity.Header)) },
			"a token in its place": func(r *http.Request) { r.Header.Del(identity.Header); r.Header.Set("Authorization", "Bearer x") },
			"one signed by others": func(r *http.Request) { r.Header = foreign.request(call.target, good).Header },
			"one of another backend": func(r *http.Request) {
				r.Header = p.request(call.target, claims(id, func(c *identity.Claims) { c.Audience[0] = "authz" })).Header
			},
			"one of another operation": func(r *http.Request) { r.Header = p.request(call.target, claims("getRun", aboutShop)).Header },
			"one that has ended":       func(r *http.Request) { r.Header = p.request(call.target, claims(id, aboutShop, expired)).Header },
		} {
			t.Run(id+" with "+name, func(t *testing.T) {
				r := p.request(call.target, good)
				change(r)
				got := p.do(r)
				got.expectProblem(t, problem.EdgeUnauthorized)
				if got.Header.Get("WWW-Authenticate") == "" || got.Header.Get("ETag") != "" {
					t.Errorf("headers %v", got.Header)
				}
			})
		}
	}
	if got := c.lists(); len(got) != 0 {
		t.Errorf("the cluster was asked for %v", got)
	}
}

func TestEverythingElseIsNotFound(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	for id, call := range targets {
		path, _, _ := strings.Cut(call.target, "?")
		for name, change := range map[string]func(r *http.Request){
			"HEAD":               func(r *http.Request) { r.Method = http.MethodHead },
			"POST":               func(r *http.Request) { r.Method = http.MethodPost },
			"DELETE":             func(r *http.Request) { r.Method = http.MethodDelete },
			"OPTIONS":            func(r *http.Request) { r.Method = http.MethodOptions },
			"an unknown method":  func(r *http.Request) { r.Method = "LOOK" },
			"a slash at the end": func(r *http.Request) { r.URL.Path = path + "/" },
			"two slashes":        func(r *http.Request) { r.URL.Path = "/" + path },
			"a dot":              func(r *http.Request) { r.URL.Path = "/." + path },
			"dots that lead up":  func(r *http.Request) { r.URL.Path = "/x/.." + path },
			"an escape":          func(r *http.Request) { r.URL.Path = path; r.URL.RawPath = strings.Replace(path, "l", "%6c", 1) },
			"a space":            func(r *http.Request) { r.URL.Path = path + " " },
			"upper case":         func(r *http.Request) { r.URL.Path = strings.ToUpper(path) },
			"one segment more":   func(r *http.Request) { r.URL.Path = path + "/more" },
		} {
			t.Run(id+" with "+name, func(t *testing.T) {
				r := p.request(call.target, call.claims())
				change(r)
				got := p.do(r)
				got.expectProblem(t, problem.EdgeNotFound)
				if got.Header.Get("Location") != "" {
					t.Errorf("the caller is led to %s", got.Header.Get("Location"))
				}
			})
		}
	}
	for _, path := range []string{"/", "/v1", "/metrics", "/internal/events/tap", "/healthz/", "//healthz", "/v1/contract"} {
		t.Run(path, func(t *testing.T) {
			r := httptest.NewRequest(http.MethodGet, "/", nil)
			r.URL.Path = path
			p.do(r).expectProblem(t, problem.EdgeNotFound)
		})
	}
	if got := c.lists(); len(got) != 0 {
		t.Errorf("the cluster was asked for %v", got)
	}
}

func TestProbesNeedNoIdentity(t *testing.T) {
	p := newReplica(t, newCluster(t), "")
	for _, path := range []string{"/healthz", "/readyz"} {
		if got := p.do(httptest.NewRequest(http.MethodGet, path, nil)); got.StatusCode != http.StatusOK || string(got.body) != "ok\n" {
			t.Errorf("%s answers %d %s", path, got.StatusCode, got.body)
		}
	}
}

func TestAParameterIsGivenOnceAndUnknownOnesDoNotMatter(t *testing.T) {
	p := newReplica(t, newCluster(t), "")
	for _, tc := range []struct{ query, names string }{
		{"?limit=5&limit=5", "limit"},
		{"?limit=&limit=5", "limit"},
		{"?limit=5&continue=a&continue=a", "continue"},
		{"?lim%69t=5&limit=5", "limit"},
		{"?limit=%zz", "query"},
		{"?a;b", "query"},
	} {
		t.Run(tc.query, func(t *testing.T) {
			if b := p.runs(tc.query).expectProblem(t, problem.BadRequest); !strings.Contains(b.Message, tc.names) || b.Hint == "" {
				t.Errorf("the answer is %+v", b)
			}
		})
	}
	twice := p.do(p.request("/v1/live?app=shop&app=shop", claims("listLiveRuns", aboutShop)))
	if b := twice.expectProblem(t, problem.BadRequest); !strings.Contains(b.Message, "app") {
		t.Errorf("the answer is %+v", b)
	}
	if b := p.tasks("?pipelineRuns=a&pipelineRuns=b").expectProblem(t, problem.BadRequest); !strings.Contains(b.Message, "pipelineRuns") {
		t.Errorf("the answer is %+v", b)
	}
	p.runs("?colour=red&colour=blue&sinceHours=5").ok(t)
	p.live("X-Unknown", "1").ok(t)
}
