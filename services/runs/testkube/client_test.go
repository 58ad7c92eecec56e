package testkube_test

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	standin "hangar.io/glidepath/internal/standin/testkube"
	"hangar.io/glidepath/services/runs/testkube"
)

func TestTheURLOfATestkube(t *testing.T) {
	t.Parallel()
	for value, good := range map[string]bool{
		"http://testkube-api-server.testkube:8088": true,
		"https://relay.example/testkube":           true,
		"":                                         false,
		"testkube:8088":                            false,
		"ftp://testkube":                           false,
		"http://user:hunter2@testkube":             false,
		"http://testkube?hunter2":                  false,
		"http://hunter2%zz":                        false,
	} {
		_, err := testkube.ParseURL(value)
		if (err == nil) != good || (err != nil && strings.Contains(err.Error(), "hunter2")) {
			t.Errorf("%q: %v", value, err)
		}
	}
}

func TestATestkubeBehindAPathOfARelay(t *testing.T) {
	t.Parallel()
	s := standin.New()
	s.Put(withReport(0))
	relay := httptest.NewServer(http.StripPrefix("/testkube", s))
	t.Cleanup(relay.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := testkube.New(testkube.Config{URL: relay.URL + "/testkube/", Transport: transport, DetailTime: generous, DetailsTime: generous})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := c.List(t.Context(), "shop", time.Time{}, 50); err != nil || len(got) != 1 {
		t.Errorf("%v, %v", got, err)
	}
}

func TestAnErrorSaysNothingOfWhatWasAsked(t *testing.T) {
	t.Parallel()
	s := standin.New()
	away := httptest.NewServer(s)
	away.Close()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	c, err := testkube.New(testkube.Config{URL: away.URL + "/relay-path", Transport: transport, DetailTime: generous, DetailsTime: generous})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.List(t.Context(), "shop", time.Time{}, 50)
	if err == nil || strings.Contains(err.Error(), "relay-path") || strings.Contains(err.Error(), "tagSelector") {
		t.Errorf("%v", err)
	}
}

func TestSpansAreNamedForWhatIsRead(t *testing.T) {
	t.Parallel()
	for target, want := range map[string]string{
		"/v1/test-workflow-executions?page=0":                            "list testkube executions",
		"/v1/test-workflow-executions/66ae":                              "get testkube execution",
		"/v1/test-workflow-executions/66ae/artifacts":                    "list testkube artifacts",
		"/v1/test-workflow-executions/66ae/artifacts/data%2Fjunit.xml":   "get testkube artifact",
		"/testkube/v1/test-workflow-executions/66ae/artifacts/junit.xml": "get testkube artifact",
	} {
		if got := testkube.SpanName(httptest.NewRequest(http.MethodGet, target, nil)); got != want {
			t.Errorf("%s: %q", target, got)
		}
	}
}

// What Testkube's own tests take for answers is read, or refused without harm.
func TestRealExecutionsAreRead(t *testing.T) {
	t.Parallel()
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES is not set: CI has the real executions")
	}
	lists := map[string]int{"pkg_mcp_formatters_executions-L16.json": 0, "pkg_mcp_formatters_executions-L99.json": 0, "pkg_mcp_formatters_executions-L118.json": 3}
	for name, want := range lists {
		body, err := os.ReadFile(filepath.Join(cases, "testkube", "executions", name))
		if err != nil {
			t.Fatal(err)
		}
		s := start(t)
		// None of them is tagged; tag those of the longest list.
		s.On(standin.List, standin.Answer(strings.ReplaceAll(string(body), `"name": "wf-`, `"tags": {"app": "shop"}, "name": "wf-`)))
		got, err := client(t, s).List(t.Context(), "shop", time.Time{}, 50)
		if err != nil || len(got) != want {
			t.Errorf("%s: %v, %v", name, ids(got), err)
		}
	}
}

func FuzzWhatTestkubeAnswers(f *testing.F) {
	f.Add(`{"results":[{"id":"66ae0b1f9d3c4a5b6c7d0000","name":"a","tags":{"app":"shop"},"result":{"status":"aborted","steps":{"a":{"status":"passed"}}}}]}`)
	f.Add(`{"results":null}`)
	f.Add(`{"results":[null,{"scheduledAt":"yesterday","result":{"durationMs":-1}}]}`)
	f.Fuzz(func(t *testing.T, body string) {
		transport := answers(body)
		c, err := testkube.New(testkube.Config{URL: "http://testkube", Transport: transport, DetailTime: generous, DetailsTime: generous})
		if err != nil {
			t.Fatal(err)
		}
		got, err := c.List(t.Context(), "shop", time.Time{}, 50)
		if err != nil {
			return
		}
		for _, r := range got {
			if r.ID == "" || r.Labels["app"] != "shop" || r.Duration < 0 {
				t.Errorf("%+v of %s", r, body)
			}
		}
	})
}

type answers string

func (a answers) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	_, _ = w.WriteString(string(a))
	resp := w.Result()
	resp.Request = r
	return resp, nil
}
