package devenv_test

import (
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/devenv/process"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/faultproxy"
	"hangar.io/glidepath/internal/standin/recorder"
)

func TestAGatewayOfTwoEdgesAndTwoLivehubsAnswersThroughBoth(t *testing.T) {
	planned, err := recorder.Start()
	must(t, err)
	t.Cleanup(planned.Stop)
	g := devtest.Gateway(t, devenv.GatewayConfig{APIServer: api, Edges: 2, Livehubs: 2, Faults: true, PlannedTo: planned.Addr})
	token := readerToken(t)

	if len(g.Edges) != 2 || len(g.Livehubs) != 2 || g.URL != g.Edges[0].URL || g.Edges[0].URL == g.Edges[1].URL {
		t.Fatalf("%d edges, %d livehubs, at %s", len(g.Edges), len(g.Livehubs), g.URL)
	}
	for _, e := range g.Edges {
		if got := status(t, e.URL+"/v1/apps/"+fleet.AppShop+"/live", token); got != http.StatusOK {
			t.Errorf("%s answers %d", e.URL, got)
		}
		if got := status(t, e.URL+"/v1/apps/"+fleet.AppShop+"/releases", token); got != http.StatusOK {
			t.Errorf("%s answers a planned operation with %d", e.URL, got)
		}
	}
	if got := len(planned.Requests()); got != len(g.Edges) {
		t.Errorf("%d planned operations were recorded, want %d", got, len(g.Edges))
	}
	if g.Faults.Count(http.MethodPost, "/apis/authentication.k8s.io/v1/tokenreviews") == 0 {
		t.Error("no review passed the fault proxy")
	}
	g.Faults.Set(faultproxy.Fault{Method: http.MethodPost, Status: http.StatusInternalServerError})
	if got := status(t, g.URL+"/v1/whoami", readerToken(t)); got != http.StatusBadGateway {
		t.Errorf("with a broken API server it answers %d", got)
	}
}

func TestStoppingAGatewayEndsItsOwnPartsAlone(t *testing.T) {
	g := devtest.Gateway(t, devenv.GatewayConfig{APIServer: api})
	var names []string
	for _, part := range g.Parts() {
		names = append(names, part.Name)
	}
	if got := strings.Join(names, " "); got != "redis livehub runs authz xds envoy" {
		t.Errorf("its parts are %q", got)
	}
	g.Stop()
	for _, part := range g.Parts() {
		if syscall.Kill(part.Process.PID(), 0) == nil {
			t.Errorf("%s still runs", part.Name)
		}
	}
	if _, err := api.Token(t.Context(), fleet.DemoNamespace, fleet.CallerReader, time.Hour); err != nil {
		t.Errorf("the shared API server: %v", err)
	}
}

func TestAGatewayThatCannotStartLeavesNothingAndSaysWhy(t *testing.T) {
	dir := t.TempDir()
	g, err := devenv.StartGateway(t.Context(), devenv.GatewayConfig{
		Dir: dir, APIServer: api, Args: map[string][]string{"xds": {"--no-such-flag"}},
	})
	if err == nil {
		g.Stop()
		t.Fatal("it started")
	}
	for _, want := range []string{"starting xds", "ended before it was ready", "--no-such-flag", "xds.log"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not say %q", err, want)
		}
	}
	// goleak sees a process that still runs: each has a goroutine that waits for it.
}

func TestWhatAGatewayKeepsIsStartedAgain(t *testing.T) {
	restarted := make(chan string, 10)
	g := devtest.Gateway(t, devenv.GatewayConfig{APIServer: api, Restarted: func(p *process.Process, err error) {
		name := p.Name()
		if err != nil {
			name += ": " + err.Error()
		}
		restarted <- name
	}})
	for _, p := range []interface {
		Name() string
		Kill()
	}{g.Edges[0].Authz, g.Edges[0].Envoy.Process, g.Livehubs[0].Process} {
		p.Kill()
		if got := <-restarted; got != p.Name() {
			t.Errorf("%s was killed and %s was started again", p.Name(), got)
		}
	}
	token := readerToken(t)
	eventually(t, "it answers", func() bool { return status(t, g.URL+"/v1/live", token) == http.StatusOK })
}

func readerToken(t *testing.T) string {
	t.Helper()
	token, err := api.Token(t.Context(), fleet.DemoNamespace, fleet.CallerReader, time.Hour)
	must(t, err)
	return token
}

// status is the status of the answer to GET, or 0.
func status(t *testing.T, url, token string) int {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	must(t, err)
	req.Header.Set("Authorization", "Bearer "+token)
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 10 * time.Second}).Do(req)
	if err != nil {
		return 0
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
