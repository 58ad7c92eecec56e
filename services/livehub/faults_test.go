package livehub

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/cache"
	"hangar.io/glidepath/internal/identity"
	"hangar.io/glidepath/internal/problem"
)

const secret = "marked-internals"

func fault(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// faults are the ways in which an API server fails.
var faults = map[string]http.HandlerFunc{
	"does not know us":     fault(401, `{"kind":"Status","message":"`+secret+`"}`),
	"refuses us":           fault(403, `{"kind":"Status","message":"`+secret+`"}`),
	"has no such resource": fault(404, "404 page not found "+secret),
	"has too many callers": fault(429, secret),
	"has a fault":          fault(500, secret),
	"is starting":          fault(503, secret),
	"answers garbage":      fault(200, "<html>"+secret),
	"answers a Status":     fault(200, `{"kind":"Status","apiVersion":"v1","status":"Failure","message":"`+secret+`"}`),
	"answers half a list":  fault(200, `{"kind":"PipelineRunList","apiVersion":"tekton.dev/v1","items":[{"metadata":{"name":"`+secret),
	"lists another space":  fault(200, `{"kind":"PipelineRunList","apiVersion":"tekton.dev/v1","items":[{"metadata":{"name":"a","namespace":"`+secret+`"}}]}`),
	"leads elsewhere":      func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, "http://"+secret, http.StatusFound) },
	"cuts the connection":  func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, //nolint:forbidigo // net/http's way of not answering
}

// rule: R401
func TestAnAPIServerThatFailsIsABadGatewayWithoutItsInternals(t *testing.T) {
	for name, f := range faults {
		t.Run("that "+name, func(t *testing.T) {
			c := newCluster(t)
			c.Config.ErrorLog = nil
			c.addRuns(shopNS + "/a")
			p := newReplica(t, c, "")
			c.fail(f)
			for id, call := range map[string]func() response{
				"listLive": func() response { return p.live() },
				"a page": func() response {
					return p.do(p.request("/v1/live?app=shop&limit=1", claims("listLiveRuns", aboutShop)))
				},
				"of runs": func() response {
					return p.do(p.request("/v1/live/taskruns?app=shop&pipelineRuns=a", claims("listLiveTaskRuns", aboutShop)))
				},
			} {
				got := call()
				b := got.expectProblem(t, problem.SourceFailed)
				if strings.Contains(string(got.body), secret) || strings.Contains(string(got.body), "127.0.0.1") || b.Hint == "" {
					t.Errorf("%s answers %s", id, got.body)
				}
				if got.Header.Get("ETag") != "" || got.Header.Get("Cache-Control") != "no-store" {
					t.Errorf("%s: a failure may be kept: %v", id, got.Header)
				}
			}
			c.fail(nil)
			// A read of the other kind may still be failing, and is shared.
			eventually(t, "the list to be read", func() bool { return p.live().StatusCode == http.StatusOK })
			if got := names(t, p.live().ok(t), "pipelineRuns"); !slices.Equal(got, []string{shopNS + "/a"}) {
				t.Errorf("afterwards it shows %v: the failure was kept", got)
			}
		})
	}
}

// rule: R401
func TestAnAPIServerThatIsGoneIsABadGateway(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	c.Close()
	p.live().expectProblem(t, problem.SourceFailed)
}

func TestAFailureOfOneListIsAFailureOfBoth(t *testing.T) {
	c := newCluster(t)
	c.addRuns(shopNS + "/a")
	p := newReplica(t, c, "")
	gate := make(chan struct{})
	defer close(gate)
	c.fail(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "taskruns") {
			fault(500, secret)(w, r)
			return
		}
		<-gate // the other one hangs, which must not matter
	})
	start := time.Now()
	p.live().expectProblem(t, problem.SourceFailed)
	if took := time.Since(start); took > testConfig.Wait/2 {
		t.Errorf("the failure took %s", took)
	}
}

// rule: R401
func TestAnAPIServerThatIsSlowKeepsACallForItsTimeAndIsReadOnce(t *testing.T) {
	c := newCluster(t)
	c.addRuns("ns/a")
	p := newReplica(t, c, "", func(cfg *Config) { cfg.Wait = 100 * time.Millisecond })
	gate := make(chan struct{})
	c.fail(func(w http.ResponseWriter, r *http.Request) {
		<-gate
		c.page(w, r.URL.Query(), "pipelineruns", "")
	})
	b := p.runs("").expectProblem(t, problem.SourceFailed)
	if !strings.Contains(b.Message, "in time") {
		t.Errorf("the message is %q", b.Message)
	}
	// The read goes on: a later call gets what it brings.
	close(gate)
	eventually(t, "the list", func() bool { return p.runs("").StatusCode == http.StatusOK })
	if got := c.lists()["pipelineruns"]; got != 1 {
		t.Errorf("the cluster was asked %d times", got)
	}
}

func TestACallerThatLeavesGetsNoAnswerAndTakesNoneAway(t *testing.T) {
	c := newCluster(t)
	c.addRuns("ns/a")
	p := newReplica(t, c, "")
	gate := make(chan struct{})
	c.fail(func(w http.ResponseWriter, r *http.Request) {
		<-gate
		c.page(w, r.URL.Query(), "pipelineruns", "")
	})
	stays := make(chan response)
	go func() { stays <- p.runs("") }()
	<-c.arrived
	ctx, leave := context.WithCancel(t.Context())
	left := make(chan any)
	w := httptest.NewRecorder()
	r := p.request("/v1/live", claims("listLiveRuns")).WithContext(ctx)
	go func() {
		defer func() { left <- recover() }()
		p.handler.ServeHTTP(w, r)
	}()
	leave()
	if got := <-left; got != http.ErrAbortHandler { //nolint:errorlint // a panic's value
		t.Errorf("the call ended with %v", got)
	}
	if w.Body.Len() != 0 || w.Header().Get("Content-Type") != "" {
		t.Errorf("the caller that left was answered %q", w.Body)
	}
	close(gate)
	if got := <-stays; !slices.Equal(names(t, got.ok(t), "pipelineRuns"), []string{"ns/a"}) {
		t.Errorf("the caller that stayed got %s", got.body)
	}
	if got := c.lists()["pipelineruns"]; got != 1 {
		t.Errorf("the cluster was asked %d times", got)
	}
}

func TestAListThatIsTooLargeIsABadGateway(t *testing.T) {
	c := newCluster(t)
	c.put("pipelineruns", object{namespace: "ns", name: "a", spec: `{"pad":"` + strings.Repeat("x", 4096) + `"}`})
	newReplica(t, c, "", func(cfg *Config) { cfg.ListBytes = 4096 }).runs("").expectProblem(t, problem.SourceFailed)
	newReplica(t, c, "", func(cfg *Config) { cfg.ListBytes = 8192 }).runs("").ok(t)
}

func TestAReplicaThatReadsAsManyListsAsItMaySaysSo(t *testing.T) {
	if b := problem.From(asProblem(cache.ErrBusy)); b.Rule.ID != problem.Busy.ID || !strings.Contains(b.Message, "lists") {
		t.Errorf("it says %+v", b)
	}
}

func TestTheIdentityIsNotPassedOn(t *testing.T) {
	c := newCluster(t) // which is strict about headers
	p := newReplica(t, c, "")
	r := p.request("/v1/live", claims("listLiveRuns"), "Authorization", "Bearer of-the-caller", "X-Glidepath-Authorization", "Bearer of-the-caller")
	p.do(r).ok(t)
	if r.Header.Get(identity.Header) != "" {
		t.Error("the identity is left in the request")
	}
}
