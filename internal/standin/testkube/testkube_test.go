package testkube_test

import (
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"hangar.io/glidepath/internal/standin/testkube"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func start(t *testing.T) *testkube.Server {
	t.Helper()
	s, err := testkube.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func get(t *testing.T, s *testkube.Server, target string) (status int, body string) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp.StatusCode, string(data)
}

func TestItAnswersAsTestkubeDoes(t *testing.T) {
	t.Parallel()
	s := start(t)
	for i, tags := range []map[string]string{{"app": "shop", "env": "stage"}, {"app": "shop", "env": "prod"}, {"app": "payroll"}} {
		s.Put(testkube.Execution{
			ID: "id" + string(rune('0'+i)), Name: "name" + string(rune('0'+i)), Workflow: "e2e", Status: "passed", Tags: tags,
			Scheduled: time.Date(2026, 8, 3, i, 0, 0, 0, time.UTC), Steps: []testkube.Step{{Ref: "r1", Status: "passed"}},
			Artifacts: map[string][]byte{"data/artifacts/junit.xml": []byte("<a/>"), "a+b 50%.txt": []byte("odd")},
		})
	}
	const base = "/v1/test-workflow-executions"
	for name, tt := range map[string]struct {
		target string
		status int
		holds  []string
		not    string
	}{
		"a list is newest first":             {base, 200, []string{`"id":"id2"`, `"totals":{"results":3}`, `"0001-01-01T00:00:00Z"`}, `"steps"`},
		"a filter by tag":                    {base + "?tagSelector=app%3Dshop", 200, []string{`"filtered":{"results":2}`, `"totals":{"results":3}`}, "id2"},
		"keys of a filter are all wanted":    {base + "?tagSelector=app%3Dshop,env%3Dprod", 200, []string{"id1"}, "id0"},
		"one key twice is either":            {base + "?tagSelector=env%3Dstage,env%3Dprod", 200, []string{"id0", "id1"}, "id2"},
		"a page begins at 0":                 {base + "?page=1&pageSize=2", 200, []string{"id0"}, "id1"},
		"behind the last page is an empty":   {base + "?page=9&pageSize=2", 200, []string{`"results":[]`}, "id0"},
		"one in full":                        {base + "/id0", 200, []string{`"steps":{"r1":`, `"resolvedWorkflow"`}, ""},
		"by its name too":                    {base + "/name0", 200, []string{`"id":"id0"`}, ""},
		"one that is not there":              {base + "/id9", 404, []string{`"title":"Not Found"`}, ""},
		"artifacts":                          {base + "/id0/artifacts", 200, []string{`"name":"data/artifacts/junit.xml"`, `"size":4`}, ""},
		"an artifact":                        {base + "/id0/artifacts/data%2Fartifacts%2Fjunit.xml", 200, []string{"<a/>"}, ""},
		"a name is unescaped twice":          {base + "/id0/artifacts/a%252Bb%252050%2525.txt", 200, []string{"odd"}, ""},
		"once is not enough":                 {base + "/id0/artifacts/a%2Bb%2050%25.txt", 500, nil, "odd"},
		"an artifact that is not there":      {base + "/id0/artifacts/x", 500, []string{"The specified key does not exist"}, ""},
		"a name that is more than a segment": {base + "/id0/artifacts/data/artifacts/junit.xml", 404, []string{"Cannot GET"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			status, body := get(t, s, tt.target)
			if status != tt.status || (tt.not != "" && strings.Contains(body, tt.not)) {
				t.Errorf("%d %s", status, body)
			}
			for _, part := range tt.holds {
				if !strings.Contains(body, part) {
					t.Errorf("no %s in %s", part, body)
				}
			}
		})
	}
}

func TestItRemembersWhatItWasAskedFor(t *testing.T) {
	t.Parallel()
	s := start(t)
	s.On(testkube.Detail, testkube.Status(http.StatusBadGateway))
	if status, _ := get(t, s, "/v1/test-workflow-executions/a%2Fb"); status != http.StatusBadGateway {
		t.Errorf("the fault answered %d", status)
	}
	if got := s.Requests(); len(got) != 1 || got[0] != "/v1/test-workflow-executions/a%2Fb" || s.Peak(testkube.Detail) != 1 {
		t.Errorf("%q, %d at once", got, s.Peak(testkube.Detail))
	}
	if s.Reset(); len(s.Requests()) != 0 || s.Peak(testkube.Detail) != 0 {
		t.Error("something was not forgotten")
	}
}
