package edge

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// leaveStream leaves a stream once its answer has begun.
func (e *edge) leaveStream(t *testing.T, path string) {
	t.Helper()
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := e.client.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	leave()
	_ = resp.Body.Close()
}

// rule: R420
func TestCounters(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	e.get(t, "/v1/live")
	e.get(t, "/v1/live")
	e.get(t, "/v1/live", "Authorization", tokenDeny)
	e.get(t, "/v1/nothing")
	e.call(t, http.MethodPost, "/v1/apps/shop/pipelineruns/x/rerun", nil)
	e.send(t, "hello\r\n\r\n")
	e.leave(t, http.MethodGet, "/v1/apps/shop/live?do=hang", func() bool { return e.backend.count("do=hang") > 0 })
	e.backend.wantLeft(t)
	e.leaveStream(t, "/v1/events?do=stream")
	e.backend.wantLeft(t)
	e.leaveStream(t, "/v1/apps/shop/live/stream?do=stream")
	e.backend.wantLeft(t)
	var page string
	want := []string{
		`envoy_glidepath_api_requests{op="listLiveRuns",tier="T0",code="200",decision="allow"} 2`,
		`envoy_glidepath_api_requests{op="listLiveRuns",tier="T0",code="403",decision="deny"} 1`,
		`envoy_glidepath_api_requests{op="_unmatched",tier="",code="404",decision="deny"} 1`,
		`envoy_glidepath_api_requests{op="_unmatched",tier="",code="400",decision="deny"} 1`,
		`envoy_glidepath_api_requests{op="rerunPipelineRun",tier="T1",code="200",decision="allow"} 1`,
		`envoy_glidepath_api_requests{op="listLive",tier="T0",code="0",decision="allow"} 1`,
		`envoy_glidepath_api_requests{op="streamEvents",tier="T0",code="200",decision="allow"} 1`,
		`envoy_glidepath_api_requests{op="streamLiveRuns",tier="T0",code="200",decision="allow"} 1`,
		`envoy_glidepath_api_request_duration_count{op="listLiveRuns",tier="T0"} 3`,
		`envoy_glidepath_api_request_duration_bucket{op="listLiveRuns",tier="T0",le="2500"} 3`,
		`envoy_glidepath_api_request_duration_count{op="_unmatched",tier=""} 2`,
	}
	eventually(t, "every counter is there", func() bool {
		page = e.admin(t, "/stats/prometheus?filter=glidepath_api")
		for _, w := range want {
			if !strings.Contains(page, w+"\n") {
				return false
			}
		}
		return true
	})
	for _, op := range []string{"listLive", "streamEvents", "streamLiveRuns"} {
		if strings.Contains(page, `request_duration_count{op="`+op+`"`) {
			t.Errorf("%s is in the histogram", op)
		}
	}
}

// rule: R421
func TestCallsUnderWayAreCountedFromTheirBeginningToTheirEnd(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	shows := func(op string, n int) {
		t.Helper()
		want := fmt.Sprintf("envoy_glidepath_api_in_flight_requests{op=%q} %d\n", op, n)
		eventually(t, want, func() bool { return strings.Contains(e.admin(t, "/stats/prometheus?filter=glidepath_api"), want) })
	}
	leave := make(chan struct{})
	var calls sync.WaitGroup
	for _, path := range []string{"/v1/apps/shop/live?do=hang", "/v1/events?do=stream", "/v1/events?do=stream", "/v1/events?do=stream", "/v1/apps/shop/live/stream?do=stream"} {
		ctx, cancel := context.WithCancel(t.Context())
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		calls.Go(func() {
			go func() { <-leave; cancel() }()
			if resp, err := e.client.Do(req); err == nil {
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
			}
		})
	}
	shows("listLive", 1)
	shows("streamEvents", 3)
	shows("streamLiveRuns", 1)
	close(leave)
	calls.Wait()
	shows("listLive", 0)
	shows("streamEvents", 0)
	shows("streamLiveRuns", 0)
	e.get(t, "/v1/nothing")
	shows("_unmatched", 0)
}

// Envoy complains about the end of a call whose beginning it has not recorded,
// and anybody could have it fill its log.
func TestACallThatComesToNoRouteLeavesNoErrorInEnvoysLog(t *testing.T) {
	t.Parallel()
	e := start(t, setup{})
	for _, request := range []string{
		"GET /v1/live HTTP/1.1\r\nHost: edge\r\nX_Under: 1\r\n\r\n",
		"GET /v1/live HTTP/1.1\r\n\r\n",
		"GET /v1/live HTTP/1.0\r\nHost: edge\r\n\r\n",
		"GET /v1/live HTTP/1.1\r\nHost: edge\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
		"GET /v1/live%00 HTTP/1.1\r\nHost: edge\r\n\r\n",
		"hello\r\n\r\n",
	} {
		if resp := e.send(t, request); resp.StatusCode < 400 {
			t.Errorf("%q is answered %d", request, resp.StatusCode)
		}
	}
	e.fence(t)
	log, err := os.ReadFile(filepath.Join(filepath.Dir(e.envoy.AccessLog), "envoy.log"))
	if err != nil {
		t.Fatal(err)
	}
	for l := range strings.Lines(string(log)) {
		if strings.Contains(l, "in_flight_requests") {
			t.Errorf("Envoy says %s", l)
		}
	}
}
