package edge

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"hangar.io/glidepath/internal/problem"
)

// threeAnHour is a limit that gives nothing back while a test runs.
const threeAnHour = "{requests: 3, per: 1h}"

// statuses makes n calls and gives what they were answered.
func (e *edge) statuses(t *testing.T, n int, path string, headers ...string) []int {
	t.Helper()
	var out []int
	for range n {
		out = append(out, e.get(t, path, headers...).StatusCode)
	}
	return out
}

func (e *edge) wantStatuses(t *testing.T, what string, got []int, want ...int) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: answered %v, want %v", what, got, want)
	}
}

// wantLimited checks that an answer is that of a call over its limit, and gives
// how long it says to wait.
func wantLimited(t *testing.T, resp *http.Response, message string) time.Duration {
	t.Helper()
	var body problem.Body
	decoder := json.NewDecoder(resp.Body)
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&body); err != nil {
		t.Fatalf("status %d: the body is no problem: %v", resp.StatusCode, err)
	}
	want := problem.New(problem.EdgeTooManyRequests, message).Body(resp.Header.Get("X-Glidepath-Trace-Id"))
	if resp.StatusCode != http.StatusTooManyRequests || body != want || body.TraceID == "" || body.Hint == "" {
		t.Errorf("status %d, body %+v, want %+v", resp.StatusCode, body, want)
	}
	for name, value := range map[string]string{"Content-Type": "application/json", "Cache-Control": "no-store"} {
		if got := resp.Header[name]; len(got) != 1 || got[0] != value {
			t.Errorf("%s: %q", name, got)
		}
	}
	after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || after < 1 || len(resp.Header["Retry-After"]) != 1 {
		t.Errorf("Retry-After: %q", resp.Header["Retry-After"])
	}
	return time.Duration(after) * time.Second
}

// rule: R387
func TestACallerOverItsLimit(t *testing.T) {
	t.Parallel()
	e := startLimited(t, setup{policy: "version: 1\nbackends: {livehub: {rateLimit: " + threeAnHour + "}}\n"})
	e.wantStatuses(t, "calls that are refused", e.statuses(t, 5, "/v1/apps/secret/live", as("reader")...), 403, 403, 403, 403, 403)
	e.wantStatuses(t, "calls of no operation", e.statuses(t, 2, "/v1/nothing", as("reader")...), 404, 404)
	e.wantStatuses(t, "the first of a backend", e.statuses(t, 2, "/v1/live", as("reader")...), 200, 200)
	e.wantStatuses(t, "another operation of it", e.statuses(t, 2, "/v1/apps/shop/live?over", as("reader")...), 200, 429)

	resp := e.get(t, "/v1/live?over", as("reader")...)
	if after := wantLimited(t, resp, "too many calls by this caller: the limit is 3 in 1h0m0s"); after > 20*time.Minute {
		t.Errorf("to wait %s for a call that comes back in 20m", after)
	}
	e.lineOf(t, resp).want(t, line{
		"msg": "audit", "op": "listLiveRuns", "tier": "T0", "status": 429.0, "decision": "allow", "rule": "GP-EDGE-429",
		"error": "too many calls by this caller: the limit is 3 in 1h0m0s", "caller": "reader", "onBehalfOf": nil, "method": "GET",
	})
	if n := e.backend.count("over"); n != 1 {
		t.Errorf("%d calls reached the backend, want the one within the limit", n)
	}
	e.wantStatuses(t, "what is refused stays refused", e.statuses(t, 1, "/v1/apps/secret/live", as("reader")...), 403)
	e.wantStatuses(t, "another caller", e.statuses(t, 3, "/v1/live", as("writer")...), 200, 200, 200)
	e.wantStatuses(t, "an operation without a limit", e.statuses(t, 5, "/v1/whoami", as("reader")...), 200, 200, 200, 200, 200)
	var page string
	eventually(t, "both are counted", func() bool {
		page = e.admin(t, "/stats/prometheus?filter=glidepath_api")
		return strings.Contains(page, `envoy_glidepath_api_requests{op="listLiveRuns",tier="T0",code="429",decision="allow"} 1`+"\n") &&
			strings.Contains(page, `envoy_glidepath_api_requests{op="listLive",tier="T0",code="429",decision="allow"} 1`+"\n")
	})
}

func TestThePeopleOfADelegate(t *testing.T) {
	t.Parallel()
	e := startLimited(t, setup{policy: "version: 1\noperations:\n  listLiveRuns:\n    rateLimit: " + threeAnHour + "\n    callerRateLimit: {requests: 9, per: 1h}\n"})
	e.wantStatuses(t, "a noisy person", e.statuses(t, 6, "/v1/live", as("tower", "ada")...), 200, 200, 200, 429, 429, 429)
	e.wantStatuses(t, "another person", e.statuses(t, 3, "/v1/live", as("tower", "bob")...), 200, 200, 200)
	e.wantStatuses(t, "the delegate for nobody", e.statuses(t, 1, "/v1/live", as("tower")...), 200)
	resp := e.get(t, "/v1/live", as("tower", "ada")...)
	wantLimited(t, resp, "too many calls on behalf of this person: the limit is 3 in 1h0m0s")
	e.lineOf(t, resp).want(t, line{"status": 429.0, "decision": "allow", "rule": "GP-EDGE-429", "caller": "tower", "onBehalfOf": "ada"})
	e.wantStatuses(t, "a third person", e.statuses(t, 2, "/v1/live", as("tower", "cleo")...), 200, 200)
	resp = e.get(t, "/v1/live", as("tower", "cleo")...)
	wantLimited(t, resp, "too many calls by this caller in all: the limit is 9 in 1h0m0s")
	e.wantStatuses(t, "another caller", e.statuses(t, 3, "/v1/live", as("reader")...), 200, 200, 200)

	t.Run("whom nobody can pass for", func(t *testing.T) {
		for name, headers := range map[string][]string{
			"a name of its own":           as("reader", "somebody"),
			"the header of an identity":   append(as("reader"), "X-Glidepath-Identity", "x"),
			"words for authz":             append(as("reader"), "Limit", "defaults 9/1s 9", "Op", "whoami", "X-Glidepath-Internal-Limit", "defaults 9/1s 9"),
			"another address":             append(as("reader"), "X-Forwarded-For", "10.1.2.3", "Forwarded", "for=10.1.2.3"),
			"words of Envoy's":            append(as("reader"), "X-Envoy-Ratelimit", "no", "X-Envoy-Internal", "true"),
			"a token in the other header": {"X-Glidepath-Authorization", "Bearer reader", "Authorization", "Bearer other"},
			"a delegate's two people":     as("tower", "dora", "emil"),
			"a delegate's two in one":     as("tower", "dora,emil"),
			"a delegate's empty name":     as("tower", ""),
		} {
			if got := e.get(t, "/v1/live?bypass", headers...).StatusCode; got != 429 && got != 403 && got != 400 {
				t.Errorf("%s: answered %d", name, got)
			}
		}
		if n := e.backend.count("bypass"); n != 0 {
			t.Errorf("%d calls reached the backend", n)
		}
	})
}

func TestWhoWaitsAsLongAsRetryAfterSaysIsServed(t *testing.T) {
	t.Parallel()
	e := startLimited(t, setup{policy: "version: 1\ndefaults: {rateLimit: {requests: 3, per: 6s, burst: 1}}\n"})
	limited := 0
	for range 40 {
		resp := e.get(t, "/v1/live", as("reader")...)
		if resp.StatusCode == http.StatusOK {
			continue
		}
		limited++
		after := wantLimited(t, resp, "too many calls by this caller: the limit is 3 in 6s")
		if after > 2*time.Second {
			t.Errorf("to wait %s for a call that comes back in 2s", after)
		}
		<-time.After(after)
		if got := e.get(t, "/v1/live", as("reader")...).StatusCode; got != http.StatusOK {
			t.Fatalf("answered %d after %s", got, after)
		}
		if limited == 2 {
			return
		}
	}
	t.Errorf("%d calls were limited", limited)
}

func TestTwoWorkersShareOneBucket(t *testing.T) {
	t.Parallel()
	e := startLimited(t, setup{policy: "version: 1\noperations: {listLiveRuns: {rateLimit: {requests: 20, per: 1h}}}\n"})
	e.envoy.Stop()
	e.workers = 2
	e.startEnvoy(t, t.TempDir(), filepath.Join(shortDir(t), "admin.sock"))
	var served, limited atomic.Int64
	var wg sync.WaitGroup
	for range 32 { // connections
		client := newClient(t)
		wg.Go(func() {
			for range 4 {
				req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.url+"/v1/live", nil)
				if err != nil {
					t.Error(err)
					return
				}
				req.Header.Set("Authorization", "Bearer reader")
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				_ = resp.Body.Close()
				switch resp.StatusCode {
				case http.StatusOK:
					served.Add(1)
				case http.StatusTooManyRequests:
					limited.Add(1)
				default:
					t.Errorf("answered %d", resp.StatusCode)
				}
			}
		})
	}
	wg.Wait()
	if served.Load() != 20 || limited.Load() != 108 {
		t.Errorf("%d calls served and %d limited, want 20 and 108", served.Load(), limited.Load())
	}
	for _, worker := range []string{"worker_0", "worker_1"} {
		if page := e.admin(t, "/stats?filter=listener.127.*"+worker+".downstream_cx_total"); page == "" || strings.Contains(page, ": 0\n") {
			t.Errorf("%s took no connection: %s", worker, page)
		}
	}
}

func TestAStreamCountsOnceWhenItBegins(t *testing.T) {
	t.Parallel()
	e := startLimited(t, setup{planned: true, policy: "version: 1\noperations: {streamEvents: {rateLimit: {requests: 2, per: 1h}}}\n"})
	open := func(t *testing.T) (status int, leave func()) {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+"/v1/events?do=stream", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer reader")
		resp, err := e.client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode == http.StatusOK {
			if first, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || first != "id: 1\n" {
				t.Errorf("the stream begins with %q: %v", first, err)
			}
		}
		return resp.StatusCode, func() {
			cancel()
			_ = resp.Body.Close()
		}
	}
	for i, want := range []int{200, 200, 429} {
		status, leave := open(t)
		defer leave()
		if status != want {
			t.Errorf("stream %d: answered %d, want %d", i+1, status, want)
		}
	}
}

func TestAChangedPolicyForgetsNothing(t *testing.T) {
	t.Parallel()
	policy := func(limit, timeout string) string {
		return "version: 1\noperations: {listLiveRuns: {rateLimit: " + limit + ", timeout: " + timeout + "}}\n"
	}
	e := startLimited(t, setup{policy: policy(threeAnHour, "20s")})
	e.wantStatuses(t, "at first", e.statuses(t, 4, "/v1/live", as("reader")...), 200, 200, 200, 429)
	e.setPolicy(t, policy(threeAnHour, "5s"))
	eventually(t, "another policy is in force", func() bool { return e.timeoutIsShort(t) })
	e.wantStatuses(t, "after another setting has changed", e.statuses(t, 2, "/v1/live", as("reader")...), 429, 429)
	e.setPolicy(t, policy("none", "5s"))
	eventually(t, "there is no limit", func() bool { return e.get(t, "/v1/live", as("reader")...).StatusCode == 200 })
	e.setPolicy(t, policy("{requests: 6, per: 1h}", "5s"))
	eventually(t, "the limit is back and twice as wide", func() bool {
		return e.get(t, "/v1/live", as("probe")...).StatusCode == 429
	})
	e.wantStatuses(t, "who had spent all of it, at once", e.statuses(t, 3, "/v1/live", as("reader")...), 429, 429, 429)
	e.wantStatuses(t, "a new caller under it", e.statuses(t, 7, "/v1/live", as("writer")...), 200, 200, 200, 200, 200, 200, 429)
}
