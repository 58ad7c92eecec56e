package telemetry_test

import (
	"errors"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/internal/telemetry"
)

// roundTripper is a collector without a network, so that time can be the
// bubble's.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func refuse(*http.Request) (*http.Response, error) { return nil, errors.New("connection refused") }

func hang(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

var everything = telemetry.TraceConfig{OTLPEndpoint: "http://collector.invalid", TraceRatio: 1}

// queued is how many spans may wait, and sent how many more may be under way.
const queued, sent = 4096, 512

func TestACollectorThatIsAwayDelaysNoCallAndKeepsNoMoreThanTheQueue(t *testing.T) {
	for name, answer := range map[string]roundTripper{"that refuses": refuse, "that hangs": hang} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				tracing, reg := start(t, everything, &http.Client{Transport: answer})
				begin := time.Now()
				for range 3 * queued {
					end(t, tracing, "call")
				}
				if took := time.Since(begin); took != 0 {
					t.Errorf("the calls waited %s", took)
				}
				begin = time.Now()
				tracing.Shutdown(t.Context())
				if took := time.Since(begin); took > 3*time.Second {
					t.Errorf("the end took %s", took)
				}
				time.Sleep(2 * time.Minute) // what is under way ends too
				got := spans(t, reg)
				if got["ended"] != 3*queued || got["exported"] != 0 {
					t.Errorf("the spans are counted as %v", got)
				}
				// While it hangs nothing leaves the queue, so the rest was dropped.
				if name == "that hangs" && (got["failed"] < queued || got["failed"] > queued+sent) {
					t.Errorf("%d spans were kept, of a queue of %d", got["failed"], queued)
				}
			})
		})
	}
}

func TestACollectorThatIsAwayIsLoggedOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		tracing, reg := start(t, everything, &http.Client{Transport: roundTripper(refuse)})
		before := warnings.n.Load()
		for second := range 50 {
			end(t, tracing, "call")
			time.Sleep(time.Second)
			if second > 5 && warnings.n.Load() != before+1 {
				t.Fatalf("%d lines after %d s", warnings.n.Load()-before, second)
			}
		}
		time.Sleep(time.Minute)
		end(t, tracing, "call")
		tracing.Shutdown(t.Context())
		if n := warnings.n.Load() - before; n != 2 {
			t.Errorf("%d lines after two minutes", n)
		}
		if got := spans(t, reg); got["failed"] != 51 {
			t.Errorf("the spans are counted as %v", got)
		}
	})
}

func TestARedirectOfTheCollectorIsNotFollowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var asked []string
		tracing, reg := start(t, everything, &http.Client{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			asked = append(asked, r.URL.String())
			return &http.Response{
				StatusCode: http.StatusTemporaryRedirect, Body: http.NoBody, Request: r,
				Header: http.Header{"Location": {"http://elsewhere.invalid/"}},
			}, nil
		})})
		end(t, tracing, "call")
		tracing.Shutdown(t.Context())
		if len(asked) != 1 || asked[0] != "http://collector.invalid:4318/v1/traces" || spans(t, reg)["failed"] != 1 {
			t.Errorf("asked %v, counted %v", asked, spans(t, reg))
		}
	})
}
