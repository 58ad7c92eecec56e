package edgemetrics_test

import (
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	"go.uber.org/goleak"

	"hangar.io/glidepath/authz/edgemetrics"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// admin serves h as an admin interface on a Unix socket and gives its address.
func admin(t *testing.T, h http.HandlerFunc) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "admin.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewUnstartedServer(h)
	if err := srv.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	srv.Listener = l
	srv.Start()
	t.Cleanup(srv.Close)
	return "unix://" + path
}

func collector(t *testing.T, address string) *prometheus.Registry {
	t.Helper()
	c, err := edgemetrics.New(address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	reg := prometheus.NewPedanticRegistry()
	reg.MustRegister(c)
	return reg
}

func envoySays(t *testing.T) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", "envoy.txt"))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

const errorsAre = `
# HELP glidepath_authz_edge_metrics_errors_total Readings of Envoy's counters that failed. The calls' metrics are missing from such a scrape.
# TYPE glidepath_authz_edge_metrics_errors_total counter
glidepath_authz_edge_metrics_errors_total %d
`

const calls = `
# HELP glidepath_api_in_flight_requests Calls being answered now. Of streams, those that are open.
# TYPE glidepath_api_in_flight_requests gauge
glidepath_api_in_flight_requests{op="listLive"} 2
glidepath_api_in_flight_requests{op="streamEvents"} 0
# HELP glidepath_api_request_duration_seconds Time to answer a call. Streams, and calls whose caller left, are not in it.
# TYPE glidepath_api_request_duration_seconds histogram
glidepath_api_request_duration_seconds_bucket{op="listLive",tier="T0",le="0.0005"} 1
glidepath_api_request_duration_seconds_bucket{op="listLive",tier="T0",le="0.025"} 5
glidepath_api_request_duration_seconds_bucket{op="listLive",tier="T0",le="2.5"} 9
glidepath_api_request_duration_seconds_bucket{op="listLive",tier="T0",le="+Inf"} 10
glidepath_api_request_duration_seconds_sum{op="listLive",tier="T0"} 4.049382716049383
glidepath_api_request_duration_seconds_count{op="listLive",tier="T0"} 10
# HELP glidepath_api_requests_total Calls answered, labelled as the audit line is.
# TYPE glidepath_api_requests_total counter
glidepath_api_requests_total{code="200",decision="allow",op="listLive",tier="T0"} 7
glidepath_api_requests_total{code="200",decision="public",op="_board",tier=""} 2
glidepath_api_requests_total{code="404",decision="deny",op="_unmatched",tier=""} 3
glidepath_api_requests_total{code="499",decision="allow",op="listLive",tier="T0"} 5
glidepath_api_requests_total{code="503",decision="deny",op="listLive",tier="T0"} 3
`

func TestEnvoysCountersAreServedUnderTheAPIsNames(t *testing.T) {
	var asked []string
	address := admin(t, func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.Method+" "+r.URL.String())
		_, _ = w.Write(envoySays(t))
	})
	reg := collector(t, address)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(calls+fmt.Sprintf(errorsAre, 0))); err != nil {
		t.Error(err)
	}
	if len(asked) != 1 || asked[0] != `GET /stats?usedonly&format=prometheus&filter=%5Eglidepath_api%5C.` {
		t.Errorf("asked %q", asked)
	}
	if problems, err := testutil.GatherAndLint(reg); err != nil || len(problems) > 0 {
		t.Errorf("%v %v", problems, err)
	}
}

func TestAnEnvoyThatHasCountedNothingYet(t *testing.T) {
	reg := collector(t, admin(t, func(http.ResponseWriter, *http.Request) {}))
	if err := testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(errorsAre, 0))); err != nil {
		t.Error(err)
	}
}

func TestAnEnvoyThatGivesNoCountersCostsNothingButThem(t *testing.T) {
	text := func(code int, body string) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = w.Write([]byte(body))
		}
	}
	for name, h := range map[string]http.HandlerFunc{
		"a failure":                     text(500, calls),
		"a redirect":                    text(302, ""),
		"garbage":                       text(200, "<html>"),
		"counters cut short":            text(200, "# TYPE envoy_glidepath_api_requests counter\nenvoy_glidepath_api_requests{op=\"a"),
		"requests that are none":        text(200, "# TYPE envoy_glidepath_api_requests gauge\nenvoy_glidepath_api_requests{op=\"a\"} 1\n"),
		"durations that are none":       text(200, "# TYPE envoy_glidepath_api_request_duration counter\nenvoy_glidepath_api_request_duration{op=\"a\"} 1\n"),
		"calls under way that are none": text(200, "# TYPE envoy_glidepath_api_in_flight_requests counter\nenvoy_glidepath_api_in_flight_requests{op=\"a\"} 1\n"),
		"text that is no text":          text(200, "# TYPE envoy_glidepath_api_requests counter\nenvoy_glidepath_api_requests{op=\"\xff\"} 1\n"),
		"more than there can be":        text(200, strings.Repeat("# of 16 bytes..\n", 1<<20)),
		"a connection that breaks": func(http.ResponseWriter, *http.Request) {
			panic(http.ErrAbortHandler) //nolint:forbidigo // how a handler drops its connection
		},
	} {
		t.Run(name, func(t *testing.T) {
			reg := collector(t, admin(t, h))
			for n := 1; n <= 2; n++ {
				if err := testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(errorsAre, n))); err != nil {
					t.Error(err)
				}
			}
		})
	}
	reg := collector(t, "unix://"+filepath.Join(t.TempDir(), "nobody.sock"))
	if err := testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(errorsAre, 1))); err != nil {
		t.Errorf("Envoy away: %v", err)
	}
}

func TestAnEnvoyThatDoesNotAnswerIsWaitedForAMomentOnly(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	address := admin(t, func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	c, err := edgemetrics.New(address)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetTimeout(50 * time.Millisecond)
	reg := prometheus.NewRegistry()
	reg.MustRegister(c)
	if err := testutil.GatherAndCompare(reg, strings.NewReader(fmt.Sprintf(errorsAre, 1))); err != nil {
		t.Error(err)
	}
}

func TestTheAddressOfAnAdminInterface(t *testing.T) {
	for address, good := range map[string]bool{
		"unix:///run/admin.sock":   true,
		"http://127.0.0.1:9901":    true,
		"http://127.0.0.1:9901/":   true,
		"http://[::1]:9901":        true,
		"http://localhost:9901":    true,
		"":                         false,
		"unix://run/admin.sock":    false,
		"unix:admin.sock":          false,
		"/run/admin.sock":          false,
		"http://10.0.0.1:9901":     false,
		"http://envoy:9901":        false,
		"http://a:b@127.0.0.1:1":   false,
		"http://127.0.0.1:1/stats": false,
		"https://127.0.0.1:9901":   false,
		"http://127.0.0.1:port":    false,
	} {
		if err := edgemetrics.CheckAddress(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		}
		if c, err := edgemetrics.New(address); (err == nil) != good {
			t.Errorf("%q: %v", address, err)
		} else if c != nil {
			c.Close()
		}
	}
}
