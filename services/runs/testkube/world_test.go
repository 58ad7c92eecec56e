package testkube_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"go.uber.org/goleak"

	standin "hangar.io/glidepath/internal/standin/testkube"
	"hangar.io/glidepath/services/runs/testkube"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// generous bounds what a test waits for and is not about.
const generous = time.Minute

func start(t *testing.T) *standin.Server {
	t.Helper()
	s, err := standin.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func client(t *testing.T, s *standin.Server, change ...func(*testkube.Config)) *testkube.Client {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	cfg := testkube.Config{URL: s.URL(), Transport: transport, DetailTime: generous, DetailsTime: generous, RequestTime: generous, Stall: generous}
	for _, c := range change {
		c(&cfg)
	}
	c, err := testkube.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// noon is when the sample runs begin.
func noon() time.Time { return time.Date(2026, 8, 3, 12, 0, 0, 0, time.UTC) }

// run is a run of the app shop that passed, the nth of the day.
func run(n int) standin.Execution {
	begin := noon().Add(time.Duration(n) * time.Minute)
	return standin.Execution{
		ID: fmt.Sprintf("66ae0b1f9d3c4a5b6c7d%04x", n), Name: fmt.Sprintf("shop-e2e-%d", n), Workflow: "shop-e2e", Status: "passed",
		Scheduled: begin, Started: begin.Add(time.Second), Finished: begin.Add(31 * time.Second),
		Steps:  []standin.Step{{Ref: "r1clone", Status: "passed"}, {Ref: "rx8k2lp", Status: "passed"}},
		Labels: map[string]string{"team": "shop"}, Tags: map[string]string{"app": "shop", "commit": "9f1c2d7"},
	}
}

func ids(tests []testkube.Test) []string {
	var all []string
	for _, t := range tests {
		all = append(all, t.ID)
	}
	return all
}
