package runs

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/problem"
	standin "hangar.io/glidepath/internal/standin/testkube"
	"hangar.io/glidepath/services/runs/testkube"
)

// withTests has the replica read a Testkube of its own.
func (w *world) withTests(executions ...standin.Execution) *standin.Server {
	w.t.Helper()
	s, err := standin.Start()
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(s.Stop)
	s.Put(executions...)
	transport := &http.Transport{}
	w.t.Cleanup(transport.CloseIdleConnections)
	if w.server.tests, err = testkube.New(testkube.Config{
		URL: s.URL(), Transport: transport, DetailTime: time.Minute, DetailsTime: time.Minute, RequestTime: time.Minute, Stall: time.Minute,
	}); err != nil {
		w.t.Fatal(err)
	}
	return s
}

// tested is the nth test run of an app, which passed and left a report.
func (w *world) tested(app string, n int) standin.Execution {
	at := w.now.Add(time.Duration(n) * time.Minute)
	return standin.Execution{
		ID: fmt.Sprintf("66ae0b1f9d3c4a5b6c7d%04x", n), Name: fmt.Sprintf("%s-e2e-%d", app, n), Workflow: "e2e", Status: "passed",
		Scheduled: at, Started: at, Finished: at.Add(90 * time.Second), Steps: []standin.Step{{Ref: "a", Status: "passed"}},
		Tags: map[string]string{"app": app}, Artifacts: map[string][]byte{"data/artifacts/junit.xml": []byte(`<testsuites name="&lt;b&gt;"/>`)},
	}
}

func (w *world) listTests(query string) *httptest.ResponseRecorder {
	return w.get("/v1/apps/shop/tests"+query, about("listTests"))
}

func (w *world) getReport(id string) *httptest.ResponseRecorder {
	return w.get("/v1/apps/shop/tests/"+id+"/report", about("getTestReport"))
}

// rule: R023, R348
func TestTheTestsOfAnAppAreAnswered(t *testing.T) {
	w := newWorld(t)
	running, aborted := w.tested("shop", 3), w.tested("shop", 2)
	running.Status, running.Finished = "running", time.Time{}
	aborted.Status = "aborted"
	w.withTests(w.tested("shop", 1), running, aborted, w.tested("payroll", 4))
	golden(t, "tests.json", w.ok(w.listTests(""), "TestList"))
	w.withTests()
	if body := w.ok(w.listTests(""), "TestList"); string(body) != `{"tests":[]}`+"\n" {
		t.Errorf("%s", body)
	}
}

// rule: R344
func TestHowManyTestsAreListed(t *testing.T) {
	w := newWorld(t)
	var all []standin.Execution
	for n := range 220 {
		all = append(all, w.tested("shop", n))
	}
	w.withTests(all...)
	for query, want := range map[string]int{"": 50, "?limit=1": 1, "?limit=200": 200} {
		if got := strings.Count(string(w.ok(w.listTests(query), "TestList")), `"name":`); got != want {
			t.Errorf("%s: %d", query, got)
		}
	}
	for _, query := range []string{"?limit=0", "?limit=201", "?limit=-1", "?limit=x", "?limit=", "?limit=1e1", "?limit=99999999999"} {
		got := w.listTests(query)
		w.refused(got, problem.BadRequest)
		if !strings.Contains(got.Body.String(), "from 1 to 200") {
			t.Errorf("%s: %s", query, got.Body)
		}
	}
}

// rule: R024
func TestAReportIsAnsweredAsXML(t *testing.T) {
	w := newWorld(t)
	large := w.tested("shop", 2)
	large.Artifacts["data/artifacts/junit.xml"] = []byte("<testsuites>" + strings.Repeat("<testcase/>", 100_000) + "</testsuites>")
	w.withTests(w.tested("shop", 1), large)
	for _, e := range []standin.Execution{w.tested("shop", 1), large} {
		got := w.getReport(e.ID)
		if got.Code != http.StatusOK || got.Body.String() != string(e.Artifacts["data/artifacts/junit.xml"]) {
			t.Errorf("got %d, %d bytes", got.Code, got.Body.Len())
		}
		for name, want := range map[string]string{
			"Content-Type": "application/xml", "X-Content-Type-Options": "nosniff", "Cache-Control": "no-store",
			"Content-Security-Policy": "default-src 'none'; sandbox", "Content-Length": fmt.Sprint(got.Body.Len()),
		} {
			if h := got.Header().Get(name); h != want {
				t.Errorf("%s is %q", name, h)
			}
		}
	}
}

// rule: R350
func TestAReportOfNobodyOrOfAnotherAppIsNotFound(t *testing.T) {
	w := newWorld(t)
	bare, old := w.tested("shop", 2), w.tested("shop", 3)
	bare.Artifacts = nil
	old.Scheduled = w.now.AddDate(-2, 0, 0) // of an app that had the name before
	w.withTests(w.tested("payroll", 1), bare, old)
	for name, id := range map[string]string{
		"another app's": w.tested("payroll", 1).ID, "without a report": bare.ID, "from before the namespace": old.ID, "never there": "66ae0b1f9d3c4a5b6c7dffff",
	} {
		t.Run(name, func(t *testing.T) { w.refused(w.getReport(id), problem.NotFound) })
	}
	if body := w.ok(w.listTests(""), "TestList"); strings.Contains(string(body), old.ID) {
		t.Errorf("it is listed: %s", body)
	}
}

// rule: R393
func TestWhatIsNoIDOfATestRunReachesNoSource(t *testing.T) {
	w := newWorld(t)
	s := w.withTests(w.tested("shop", 1))
	for _, id := range []string{"-a", "a-", "a.b", "a%20b", strings.Repeat("a", 129), "a'b"} {
		w.refused(w.getReport(id), problem.BadRequest)
	}
	w.refused(w.listTests("?limit=201"), problem.BadRequest)
	if len(s.Requests()) > 0 || len(w.cluster.asked) > 0 {
		t.Errorf("Testkube was asked for %q, the cluster for %q", s.Requests(), w.cluster.asked)
	}
}

func TestATestkubeThatIsDownIsSaidToBe(t *testing.T) {
	const secret = "secret-of-testkube"
	w := newWorld(t)
	s := w.withTests(w.tested("shop", 1))
	for part, fault := range map[standin.Part]standin.Fault{standin.List: standin.Status(500), standin.Download: standin.Cut("<testsuites>" + secret)} {
		s.On(part, fault)
	}
	for _, got := range []*httptest.ResponseRecorder{w.listTests(""), w.getReport(w.tested("shop", 1).ID)} {
		w.refused(got, problem.SourceFailed)
		if strings.Contains(got.Body.String(), secret) || !strings.Contains(got.Body.String(), "Testkube") {
			t.Errorf("%s", got.Body)
		}
	}
	s.On(standin.List, standin.Slow(time.Minute))
	w.server.wait = 50 * time.Millisecond
	if got := w.listTests(""); !strings.Contains(got.Body.String(), "Testkube did not answer in time") {
		t.Errorf("%d %s", got.Code, got.Body)
	}
	claims := about("listTests")
	claims.App = "payroll"
	w.refused(w.get("/v1/apps/shop/tests", claims), problem.EdgeUnauthorized)
}

// rule: R345
func TestWhereTestkubeIs(t *testing.T) {
	cfg, err := parse(t, nil, "--identity-keys-dir=d", "--seal-key=s", "--results-url=http://r")
	if err != nil || cfg.TestkubeURL != "http://testkube-api-server.testkube:8088" {
		t.Errorf("%s, %v", cfg.TestkubeURL, err)
	}
	if cfg, err = parse(t, map[string]string{"TESTKUBE_URL": "https://relay/x"}, "--identity-keys-dir=d", "--seal-key=s", "--results-url=http://r"); err != nil || cfg.TestkubeURL != "https://relay/x" {
		t.Errorf("%s, %v", cfg.TestkubeURL, err)
	}
}
