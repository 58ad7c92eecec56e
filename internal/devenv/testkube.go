package devenv

import (
	"encoding/hex"
	"fmt"
	"time"

	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/testkube"
)

// startTestkube starts what stands in for Testkube, with some test runs of the sample fleet. It ends with the gateway.
func (g *Gateway) startTestkube() error {
	var err error
	if g.Testkube, err = testkube.Start(); err != nil {
		return err
	}
	g.undo = append(g.undo, g.Testkube.Stop)
	for i, app := range []string{fleet.AppShop, fleet.AppGateAPI} {
		g.Testkube.Put(sampleTests(app, i, time.Now())...)
	}
	return nil
}

// sampleTests are the test runs of an app since its namespace was made, which was a moment ago: one passed, one failed, one was
// aborted although all had passed, and one runs. Each that ended left a report.
func sampleTests(app string, number int, now time.Time) []testkube.Execution {
	var all []testkube.Execution
	for i, e := range []struct{ status, step string }{{"passed", "passed"}, {"failed", "failed"}, {"aborted", "passed"}, {"running", "running"}} {
		begun := now.Add(time.Duration(i) * time.Millisecond)
		run := testkube.Execution{
			ID: hex.EncodeToString(fmt.Appendf(nil, "glidepath%d%02d", number, i)), Name: fmt.Sprintf("%s-e2e-%d", app, i+1), Workflow: app + "-e2e",
			Status: e.status, Scheduled: begun, Started: begun.Add(time.Millisecond),
			Steps: []testkube.Step{{Ref: "clone", Status: "passed"}, {Ref: "test", Status: e.step}},
			Tags:  map[string]string{"app": app}, Labels: map[string]string{"glidepath.hangar.io/app": app},
		}
		if e.status != "running" {
			run.Finished = begun.Add(time.Second)
			run.Artifacts = map[string][]byte{"data/artifacts/junit.xml": sampleReport(app, e.step == "failed")}
		}
		all = append(all, run)
	}
	return all
}

// sampleReport is what the one test of an app left, in JUnit's form.
func sampleReport(app string, failed bool) []byte {
	failures, testcase := 0, `<testcase name="answers" time="0.9"/>`
	if failed {
		failures, testcase = 1, `<testcase name="answers" time="0.9"><failure message="want 200, got 503">GET /healthz: 503 Service Unavailable</failure></testcase>`
	}
	return fmt.Appendf(nil, `<?xml version="1.0"?><testsuites><testsuite name=%q tests="1" failures="%d">%s</testsuite></testsuites>`, app, failures, testcase)
}
