package livehub

import (
	"encoding/json"
	"net/http"
	"testing"

	"hangar.io/glidepath/internal/problem"
)

// FuzzQuery: whatever the query is, a call is answered or refused in JSON.
func FuzzQuery(f *testing.F) {
	for _, query := range []string{
		"", "limit=1", "limit=1&continue=WyJhIl0", "pipelineRuns=a,b", "pipelineRuns=,", "app=&limit=%zz", "limit[]=1;", "limit=1&limit=1",
	} {
		f.Add(query)
	}
	c := newCluster(f)
	c.addRuns("ns/a", "ns/b")
	c.addTasks("a", "ns/a")
	shared := newReplica(f, c, "")
	f.Fuzz(func(t *testing.T, query string) {
		p := *shared
		p.t = t
		for path, op := range map[string]string{"/v1/live": "listLiveRuns", "/v1/live/taskruns": "listLiveTaskRuns"} {
			r := p.request(path, claims(op))
			r.URL.RawQuery = query
			got := p.do(r)
			if !json.Valid(got.body) || got.Header.Get("Content-Type") != "application/json" {
				t.Fatalf("%s?%s answers %d %q", path, query, got.StatusCode, got.body)
			}
			switch got.StatusCode {
			case http.StatusOK, problem.BadRequest.Status, problem.EdgeUnauthorized.Status:
			default:
				t.Fatalf("%s?%s answers %d %s", path, query, got.StatusCode, got.body)
			}
		}
	})
}
