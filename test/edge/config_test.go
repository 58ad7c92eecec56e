package edge

import (
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// A loaded machine answers well within the short timeout; the hasty one is
// for calls that are not answered at all.
const (
	hastyTimeout = "version: 1\noperations:\n  listLiveRuns: {timeout: 150ms}\n"
	shortTimeout = "version: 1\noperations:\n  listLiveRuns: {timeout: 5s}\n"
	longTimeout  = "version: 1\noperations:\n  listLiveRuns: {timeout: 20s}\n"
	badPolicy    = "version: 1\noperations:\n  listLiveRuns: {timeout: soon}\n"
)

// timeoutIsShort says whether the short timeout is in force.
func (e *edge) timeoutIsShort(t *testing.T) bool {
	t.Helper()
	return strings.Contains(e.admin(t, "/config_dump?resource=dynamic_route_configs"), `"5s"`)
}

func TestANewPolicyIsInForceWithoutAFailedCall(t *testing.T) {
	t.Parallel()
	e := start(t, setup{policy: longTimeout})
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		client := newClient(t)
		wg.Go(func() { e.keepCalling(t, client, stop, nil) })
	}
	for range 5 {
		for policy, want := range map[string]bool{shortTimeout: true, longTimeout: false} {
			e.setPolicy(t, policy)
			eventually(t, "the policy is in force", func() bool { return e.timeoutIsShort(t) == want })
		}
	}
	close(stop)
	wg.Wait()
	e.setPolicy(t, hastyTimeout)
	eventually(t, "a call times out", func() bool {
		return e.get(t, "/v1/live?do=hang").StatusCode == http.StatusGatewayTimeout
	})
}

// In force within two tenths of a second is the aim, and the time it took is in
// the log. What fails is a change that was found only because the file is read
// again every ten seconds.
func TestAPolicyIsInForceSoon(t *testing.T) {
	t.Parallel()
	e := start(t, setup{policy: longTimeout})
	begin := time.Now()
	e.setPolicy(t, shortTimeout)
	eventually(t, "the policy is in force", func() bool { return e.timeoutIsShort(t) })
	took := time.Since(begin)
	t.Logf("in force after %s", took)
	if took > 8*time.Second {
		t.Errorf("in force only after %s", took)
	}
}

func TestABadPolicyChangesNothing(t *testing.T) {
	t.Parallel()
	e := start(t, setup{policy: shortTimeout})
	eventually(t, "the policy is in force", func() bool { return e.timeoutIsShort(t) })
	e.setPolicy(t, badPolicy)
	e.wantMetric(t, "glidepath_xds_stale 1")
	if !e.timeoutIsShort(t) {
		t.Error("the bad policy changed what Envoy serves")
	}
	t.Run("until it is made good", func(t *testing.T) {
		e.setPolicy(t, longTimeout)
		eventually(t, "the good policy is in force", func() bool { return !e.timeoutIsShort(t) })
		e.wantMetric(t, "glidepath_xds_stale 0")
	})
}

func TestTheEdgeServesWithoutXDS(t *testing.T) {
	t.Parallel()
	e := start(t, setup{policy: shortTimeout})
	eventually(t, "the policy is in force", func() bool { return e.timeoutIsShort(t) })
	if err := e.xds.stop(); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		if got := e.get(t, "/v1/live").StatusCode; got != http.StatusOK {
			t.Fatalf("status %d without xds", got)
		}
	}

	// One that cannot build serves the last good configuration, to the Envoy
	// that is there and to one that starts then.
	e.setPolicy(t, badPolicy)
	e.startXDS(t)
	e.wantMetric(t, "glidepath_xds_stale 1")
	e.wantMetric(t, "glidepath_xds_envoys 1")
	if got := e.get(t, "/v1/live").StatusCode; got != http.StatusOK || !e.timeoutIsShort(t) {
		t.Errorf("status %d, the last good timeout in force: %t", got, e.timeoutIsShort(t))
	}
	e.envoy.Stop()
	e.startEnvoy(t, t.TempDir(), filepath.Join(shortDir(t), "admin.sock"))
	if got := e.get(t, "/v1/live").StatusCode; got != http.StatusOK || !e.timeoutIsShort(t) {
		t.Errorf("a new Envoy: status %d, the last good timeout in force: %t", got, e.timeoutIsShort(t))
	}

	e.setPolicy(t, longTimeout)
	eventually(t, "the good policy is in force", func() bool { return !e.timeoutIsShort(t) })
	e.wantMetric(t, "glidepath_xds_stale 0")
}

func TestAnXDSThatStartsLaterIsWaitedFor(t *testing.T) {
	t.Parallel()
	e := start(t, setup{policy: longTimeout})
	if err := e.xds.stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.RemoveAll(e.options.StateDir); err != nil {
		t.Fatal(err)
	}
	t.Run("one without any configuration does not start", func(t *testing.T) {
		e.setPolicy(t, badPolicy)
		e.startFails(t, "3:27: operations.listLiveRuns.timeout")
	})
	e.setPolicy(t, shortTimeout)
	e.startXDS(t)
	eventually(t, "Envoy has found the new xds", func() bool { return e.timeoutIsShort(t) })
}

// wantMetric waits for a line on the metrics page of xds.
func (e *edge) wantMetric(t *testing.T, want string) {
	t.Helper()
	eventually(t, "xds says "+want, func() bool {
		resp, err := e.client.Get("http://" + e.options.MetricsListen + "/metrics")
		if err != nil {
			return false
		}
		return strings.Contains(string(readAll(t, resp)), want+"\n")
	})
}
