package e2e_test

import (
	"context"
	"net/http"
	"os"
	"strconv"
	"testing"

	"hangar.io/glidepath/internal/devenv"
)

// setPolicy puts a route policy into an edge's file, as an editor does.
func setPolicy(t *testing.T, e *devenv.Edge, policy string) {
	t.Helper()
	next := e.Policy + ".next"
	if err := os.WriteFile(next, []byte(policy), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(next, e.Policy); err != nil {
		t.Fatal(err)
	}
}

// The limit gives nothing back while the test runs.
func TestADelegatesPeopleHaveLimitsOfTheirOwn(t *testing.T) {
	const path = "/v1/apps/shop/releases"
	by := func(person string) answer { return get(t, path, as("delegate"), onBehalfOf(person)) }
	limited := map[string]string{"op": "listReleases", "tier": "T0", "code": "429", "decision": "allow"}
	before := count(t, limited)
	over := 0.0

	setPolicy(t, gw.Edges[0], "version: 1\noperations: {listReleases: {rateLimit: {requests: 3, per: 1h}, callerRateLimit: {requests: 10, per: 1h}}}\n")
	t.Cleanup(func() {
		setPolicy(t, gw.Edges[0], "version: 1\n")
		eventually(t, "there is no limit", func() bool {
			_, a, err := try(context.Background(), http.MethodGet, gw.URL+path, as("delegate"), onBehalfOf("user:default/noisy"))
			return err == nil && a.status == http.StatusOK
		})
	})
	// Nothing is counted before, so that exactly three of these count.
	eventually(t, "the limit is in force", func() bool {
		a := by("user:default/probe")
		if a.status == http.StatusTooManyRequests {
			over++
			return true
		}
		return false
	})

	for range 3 {
		ok(t, by("user:default/noisy"))
	}
	for range 2 {
		a := by("user:default/noisy")
		over++
		refused(t, a, http.StatusTooManyRequests, "GP-EDGE-429")
		after, err := strconv.Atoi(a.header.Get("Retry-After"))
		if err != nil || after < 1 || after > 20*60 {
			t.Errorf("Retry-After: %q", a.header.Get("Retry-After"))
		}
		if b := a.problem(t); b.TraceID == "" || b.Hint == "" {
			t.Errorf("the body is %+v", b)
		}
		expectLine(t, auditOf(t, a), line{
			"op": "listReleases", "tier": "T0", "app": "shop", "status": 429.0, "decision": "allow", "rule": "GP-EDGE-429",
			"caller": username(t, "delegate"), "onBehalfOf": "user:default/noisy",
		})
	}
	for range 3 {
		ok(t, by("user:default/quiet"))
	}
	ok(t, get(t, path, as("delegate")))
	// Ten in all, whoever comes next.
	over++
	refused(t, by("user:default/third"), http.StatusTooManyRequests, "GP-EDGE-429")
	// Refusals count for nothing, and those without the right learn of no limit.
	for range 5 {
		refused(t, get(t, path, as("stranger")), http.StatusForbidden, "GP-AUTHZ-001")
	}
	ok(t, get(t, path, as("reader")))
	eventually(t, "the calls over the limit are counted", func() bool { return count(t, limited) == before+over })
}
