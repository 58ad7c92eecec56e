package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/faultproxy"
)

const (
	tokenReviews  = "/apis/authentication.k8s.io/v1/tokenreviews"
	accessReviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews"

	garbage = "<html>\x00\xff an answer of something else</html>"
)

// newToken gives a token that no cache has seen.
func newToken(t *testing.T, caller string) string {
	t.Helper()
	c, ok := fleet.LookupCaller(caller)
	if !ok {
		t.Fatalf("no sample caller %q", caller)
	}
	token, err := fleet.Token(t.Context(), gw.APIServer.Admin, c, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// quickly fails the test when a refusal took longer than the edge's own
// deadline for a decision allows.
func quickly(t *testing.T, f func() answer) answer {
	t.Helper()
	start := time.Now()
	a := f()
	if d := time.Since(start); d > 8*time.Second {
		t.Errorf("the answer took %s", d)
	}
	return a
}

// rule: R402
func TestNoFaultOfTheReviewsIsAnAllow(t *testing.T) {
	defer gw.Faults.Clear()
	status := func(path string, code int, body string) []faultproxy.Fault {
		return []faultproxy.Fault{{Method: "POST", Path: path, Status: code, Body: body, Header: http.Header{"Content-Type": {"application/json"}}}}
	}
	allowedBody := `{"kind":"Status","apiVersion":"v1","status":"Failure","code":500}`
	faults := map[string][]faultproxy.Fault{}
	for review, path := range map[string]string{"TokenReview": tokenReviews, "SubjectAccessReview": accessReviews} {
		for _, code := range []int{401, 403, 404, 409, 429, 500, 503} {
			faults[fmt.Sprintf("%s answers %d", review, code)] = status(path, code, allowedBody)
		}
		later := status(path, 429, allowedBody)
		later[0].Header.Set("Retry-After", "30")
		faults[review+" answers 429 and asks to wait for half a minute"] = later
		faults[review+" answers garbage"] = status(path, 201, garbage)
		faults[review+" answers 201 without a body"] = status(path, 201, "")
		faults[review+" answers 201 with another kind"] = status(path, 201, `{"kind":"Pod","apiVersion":"v1","status":{"allowed":true,"authenticated":true}}`)
		faults[review+" answers 200 that is cut"] = status(path, 200, `{"kind":"`+review+`","status":{"allowed":tr`)
		faults[review+" breaks the connection"] = []faultproxy.Fault{{Method: "POST", Path: path, Abort: true}}
		faults[review+" is slow"] = []faultproxy.Fault{{Method: "POST", Path: path, Delay: 30 * time.Second}}
	}
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			token := newToken(t, "operator")
			gw.Faults.Set(fault...)
			defer gw.Faults.Clear()
			for _, c := range []struct{ method, op string }{{"POST", "cancelPipelineRun"}, {"GET", "listLive"}} {
				a := quickly(t, func() answer { return call(t, c.method, gw.URL+calls[c.op], bearer(token)) })
				if c.op == "listLive" && strings.HasPrefix(name, "Sub") && a.status == http.StatusForbidden {
					t.Errorf("%s: a failed review was taken for a decision", c.op)
				}
				refused(t, a, 502, "GP-API-502")
			}
			gw.Faults.Clear()
			if a := call(t, http.MethodPost, gw.URL+calls["cancelPipelineRun"], bearer(token)); a.status != http.StatusOK {
				t.Errorf("after the fault: got %d, so a failure was kept", a.status)
			}
		})
	}
}

func TestAFaultOfTheListsIsA502WithoutInternals(t *testing.T) {
	defer gw.Faults.Clear()
	const path = "/apis/tekton.dev/v1/pipelineruns"
	for name, fault := range map[string]faultproxy.Fault{
		"401":                  {Method: "GET", Path: path, Status: 401},
		"403":                  {Method: "GET", Path: path, Status: 403, Body: `{"kind":"Status","message":"system:serviceaccount:platform-system:glidepath-livehub cannot list"}`},
		"429":                  {Method: "GET", Path: path, Status: 429, Header: http.Header{"Retry-After": {"1"}}},
		"500":                  {Method: "GET", Path: path, Status: 500, Body: "etcdserver: leader changed"},
		"garbage":              {Method: "GET", Path: path, Status: 200, Body: garbage},
		"200 with half a list": {Method: "GET", Path: path, Status: 200, Body: `{"kind":"PipelineRunList","apiVersion":"tekton.dev/v1","metadata":{},"items":[{"metadata":{"name":"a"`},
	} {
		t.Run(name, func(t *testing.T) {
			gw.Faults.Set(fault)
			defer gw.Faults.Clear()
			// Until what was cached before is too old.
			var a answer
			eventually(t, "the fault shows", func() bool { a = get(t, "/v1/live", as("reader")); return a.status != http.StatusOK })
			refused(t, a, 502, "GP-API-502")
			for _, internal := range []string{"glidepath-livehub", "etcdserver", "127.0.0.1"} {
				if strings.Contains(string(a.body), internal) {
					t.Errorf("the answer shows %q: %s", internal, a.body)
				}
			}
			gw.Faults.Clear()
			ok(t, get(t, "/v1/live", as("reader")))
		})
	}
}

// rule: R402
func TestTheAPIServerDownIsA502AndUpAgainNeedsNoRestart(t *testing.T) {
	tokenBefore := newToken(t, "reader")
	gw.Faults.Down()
	down := true
	defer func() {
		if down {
			_ = gw.Faults.Up()
		}
	}()
	refused(t, quickly(t, func() answer { return get(t, "/v1/apps/gate-api/live", bearer(tokenBefore)) }), 502, "GP-API-502")
	refused(t, quickly(t, func() answer {
		return call(t, http.MethodPost, gw.URL+calls["cancelPipelineRun"], as("operator"))
	}), 502, "GP-API-502")
	if err := gw.Faults.Up(); err != nil {
		t.Fatal(err)
	}
	down = false
	eventually(t, "reads work again", func() bool { return get(t, "/v1/apps/gate-api/live", bearer(tokenBefore)).status == http.StatusOK })
}

func TestRedisAwayCostsNothingButTheSharedCache(t *testing.T) {
	gw.Redis.Process.Kill()
	defer func() {
		if err := gw.Redis.Process.Restart(cleanupContext(t)); err != nil {
			t.Error(err)
		}
	}()
	for range 5 {
		a := quickly(t, func() answer { return get(t, "/v1/live", as("reader")) })
		ok(t, a)
		ok(t, get(t, "/v1/apps/shop/live", as("reader")))
	}
	create(t, pipelineRuns, "PipelineRun", "app-shop-cicd", "e2e-no-redis", nil)
	fresh(t, "/v1/apps/shop/live", has("app-shop-cicd/e2e-no-redis"))
}

func TestARedisThatHangsDelaysNoReader(t *testing.T) {
	gw.Redis.Process.Pause()
	defer gw.Redis.Process.Resume()
	for range 5 {
		ok(t, quickly(t, func() answer { return get(t, "/v1/live", as("reader")) }))
	}
}

// rule: R402, R403
func TestAuthzKilledUnderLoadAllowsNothingAndLeavesNothingHanging(t *testing.T) {
	authz := gw.Edges[0].Authz
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var allowedWrong, hung, unavailable, served atomic.Int64
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for ctx.Err() == nil {
				// Half of them may not read at all.
				caller, want := "reader", http.StatusOK
				if i%2 == 0 {
					caller, want = "stranger", http.StatusForbidden
				}
				_, a, err := try(ctx, http.MethodGet, gw.URL+"/v1/apps/gate-api/live", as(caller))
				var timeout interface{ Timeout() bool }
				switch {
				case ctx.Err() != nil:
				case errors.As(err, &timeout) && timeout.Timeout():
					hung.Add(1)
				case err != nil:
					t.Errorf("the edge itself failed: %v", err)
				case a.status == http.StatusOK && want != http.StatusOK:
					allowedWrong.Add(1)
				case a.status == http.StatusServiceUnavailable:
					unavailable.Add(1)
				case a.status == want:
					served.Add(1)
				case a.status != http.StatusBadGateway:
					t.Errorf("%s got %d: %.200s", caller, a.status, a.body)
				}
			}
		})
	}
	eventually(t, "load", func() bool { return served.Load() > 50 })
	allowed := map[string]string{"op": "listLive", "tier": "T0", "code": "200", "decision": "allow"}
	countedBefore := count(t, allowed)
	authz.Kill()
	eventually(t, "refusals while authz is away", func() bool { return unavailable.Load() > 20 })
	a := get(t, "/v1/apps/gate-api/live", as("reader"))
	refused(t, a, 503, "GP-EDGE-503")
	if err := authz.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := served.Load()
	eventually(t, "calls are served again", func() bool { return served.Load() > before+50 })
	// The counts are Envoy's: the authz that was started anew tells those from before too.
	if n := count(t, allowed); countedBefore == 0 || n <= countedBefore {
		t.Errorf("%v calls were counted before authz was killed, %v after", countedBefore, n)
	}
	cancel()
	wg.Wait()
	if allowedWrong.Load() != 0 || hung.Load() != 0 {
		t.Errorf("%d strangers were let in, %d calls hung", allowedWrong.Load(), hung.Load())
	}
	expectLine(t, auditOf(t, a), line{"op": "listLive", "tier": "T0", "decision": "deny", "rule": "GP-EDGE-503", "status": 503.0, "caller": nil})
	if n := count(t, map[string]string{"op": "listLive", "tier": "T0", "code": "503", "decision": "deny"}); n < float64(unavailable.Load()) {
		t.Errorf("%v refusals counted, %d were answered", n, unavailable.Load())
	}
}

func TestABackendThatIsAwayIsSaidPlainly(t *testing.T) {
	livehub := gw.Livehubs[0].Process
	livehub.Kill()
	defer func() {
		if err := livehub.Restart(cleanupContext(t)); err != nil {
			t.Error(err)
		}
	}()
	a := quickly(t, func() answer { return get(t, "/v1/live", as("reader")) })
	refused(t, a, 503, "GP-EDGE-503")
	expectLine(t, auditOf(t, a), line{"op": "listLiveRuns", "decision": "allow", "rule": "GP-EDGE-503", "status": 503.0, "caller": username(t, "reader")})
}
