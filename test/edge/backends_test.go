package edge

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/problem"
	"hangar.io/glidepath/xds"
)

// rule: R387
func TestBackendsThatFail(t *testing.T) {
	t.Parallel()
	e := start(t, setup{policy: "version: 1\noperations:\n  listLiveRuns: {timeout: 200ms}\n"})
	t.Run("no answer in time", func(t *testing.T) {
		t.Parallel()
		resp := e.get(t, "/v1/live?do=hang")
		wantProblem(t, resp, problem.EdgeGatewayTimeout)
		e.lineOf(t, resp).want(t, line{
			"status": 504.0, "rule": "GP-EDGE-504", "error": "response_timeout", "decision": "allow",
			"caller": "system:serviceaccount:shop:reader", "app": "shop", "onBehalfOf": "ada",
		})
	})
	t.Run("an answer that is not HTTP", func(t *testing.T) {
		t.Parallel()
		resp := e.get(t, "/v1/apps/shop/live?do=garbage")
		wantProblem(t, resp, problem.EdgeBadGateway)
		e.lineOf(t, resp).want(t, line{"status": 502.0, "rule": "GP-EDGE-502", "decision": "allow"})
	})
	t.Run("an answer that breaks off has a line that says so", func(t *testing.T) {
		t.Parallel()
		resp, err := e.client.Get(e.url + "/v1/apps/shop/live?do=cut")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadAll(resp.Body); err == nil {
			t.Error("the answer looks whole")
		}
		_ = resp.Body.Close()
		l := e.lineOf(t, resp)
		l.want(t, line{"status": 200.0, "rule": nil, "decision": "allow"})
		if l["error"] == nil {
			t.Errorf("the line says nothing of it: %v", l)
		}
	})
	t.Run("a problem of the backend's own is the backend's", func(t *testing.T) {
		t.Parallel()
		resp := e.get(t, "/v1/apps/shop/live?do=fail")
		if resp.StatusCode != http.StatusBadGateway || len(readAll(t, resp)) != 0 {
			t.Errorf("status %d", resp.StatusCode)
		}
		e.lineOf(t, resp).want(t, line{"status": 502.0, "rule": "GP-API-502", "error": "the source failed", "decision": "allow"})
	})
	t.Run("a backend that is not there", func(t *testing.T) {
		t.Parallel()
		gone := start(t, setup{})
		gone.options.Backends = "livehub=" + port(t) + ";runs=" + port(t) // nothing listens there
		if err := gone.xds.stop(); err != nil {
			t.Fatal(err)
		}
		gone.startXDS(t)
		eventually(t, "the edge knows the new address", func() bool {
			return gone.get(t, "/v1/live").StatusCode == http.StatusServiceUnavailable
		})
		resp := gone.get(t, "/v1/apps/shop/live")
		wantProblem(t, resp, problem.EdgeUnavailable)
		gone.lineOf(t, resp).want(t, line{"status": 503.0, "rule": "GP-EDGE-503", "decision": "allow"})
	})
}

// A dead replica is never busier than another one, so that it is drawn again for many a call that it failed.
func TestADeadReplicaOfThreeFailsNoRead(t *testing.T) {
	t.Parallel()
	const calls = 1500
	e := start(t, setup{options: func(o *xds.Options) {
		first, _, _ := strings.Cut(strings.TrimPrefix(o.Backends, "livehub="), ";")
		dead := port(t) // nothing listens there
		o.Backends = "livehub=" + strings.Join([]string{dead, first, startBackend(t).addr}, ",") + ";runs=" + first
	}})
	failed := 0
	for range calls { // in turns: when all replicas are idle, each is as likely to be drawn
		resp := e.get(t, "/v1/apps/shop/live")
		if resp.StatusCode != http.StatusOK {
			failed++
		}
		_ = readAll(t, resp)
	}
	if failed > 0 {
		t.Errorf("%d of %d reads failed", failed, calls)
	}
	if page := e.admin(t, "/stats?filter=^cluster.livehub.upstream_cx_connect_fail$"); page == "" || strings.HasSuffix(page, ": 0\n") {
		t.Errorf("no call was sent to the dead one: %q", page)
	}
}

func TestRetries(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	for name, tt := range map[string]struct {
		method, path string
		fails        int
		want, calls  int
	}{
		"a read is sent again once":    {"GET", "/v1/live?do=drop&once", 1, 200, 2},
		"a read is not sent thrice":    {"GET", "/v1/live?do=drop&twice", 9, 503, 2},
		"a write is not sent again":    {"POST", "/v1/apps/shop/pipelineruns/x/rerun?do=drop&write", 9, 503, 1},
		"a document is not sent again": {"POST", "/v1/apps/shop/cicd/validations?do=drop&document", 9, 503, 1},
	} {
		t.Run(name, func(t *testing.T) { // in turns: they share the count of drops
			e.backend.mu.Lock()
			e.backend.fails = tt.fails
			e.backend.mu.Unlock()
			resp := e.call(t, tt.method, tt.path, nil)
			if resp.StatusCode != tt.want {
				t.Errorf("status %d, want %d", resp.StatusCode, tt.want)
			}
			if n := e.backend.count(resp.Request.URL.RawQuery); n != tt.calls {
				t.Errorf("the backend was called %d times, want %d", n, tt.calls)
			}
			e.lineOf(t, resp)
		})
	}
}
