package edge

import (
	"context"
	"fmt"
	"io"
	"net/http"
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
