package edge

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestCounters(t *testing.T) {
	t.Parallel()
	e := start(t, setup{planned: true})
	e.get(t, "/v1/live")
	e.get(t, "/v1/live")
	e.get(t, "/v1/live", "Authorization", tokenDeny)
	e.get(t, "/v1/nothing")
	e.call(t, http.MethodPost, "/v1/apps/shop/pipelineruns/x/rerun", nil)
	e.send(t, "hello\r\n\r\n")
	for _, path := range []string{"/v1/apps/shop/live?do=hang", "/v1/events?do=stream"} {
		ctx, leave := context.WithTimeout(t.Context(), 300*time.Millisecond)
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, e.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if resp, err := e.client.Do(req); err == nil {
			<-ctx.Done()
			_ = resp.Body.Close()
		}
		leave()
		<-e.backend.left
	}
	var page string
	want := []string{
		`envoy_glidepath_api_requests{op="listLiveRuns",tier="T0",code="200",decision="allow"} 2`,
		`envoy_glidepath_api_requests{op="listLiveRuns",tier="T0",code="403",decision="deny"} 1`,
		`envoy_glidepath_api_requests{op="_unmatched",tier="",code="404",decision="deny"} 1`,
		`envoy_glidepath_api_requests{op="_unmatched",tier="",code="400",decision="deny"} 1`,
		`envoy_glidepath_api_requests{op="rerunPipelineRun",tier="T1",code="200",decision="allow"} 1`,
		`envoy_glidepath_api_requests{op="listLive",tier="T0",code="0",decision="allow"} 1`,
		`envoy_glidepath_api_requests{op="streamEvents",tier="T0",code="200",decision="allow"} 1`,
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
	for _, op := range []string{"listLive", "streamEvents"} {
		if strings.Contains(page, `request_duration_count{op="`+op+`"`) {
			t.Errorf("%s is in the histogram", op)
		}
	}
}
