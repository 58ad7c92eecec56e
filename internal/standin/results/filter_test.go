package results_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"hangar.io/glidepath/internal/standin/results"
)

var at = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

const recordsPath = "/apis/results.tekton.dev/v1alpha2/parents/-/results/-/records"

func put(t *testing.T, s *results.Server, name, kind, value string) {
	t.Helper()
	if err := s.PutRecord(results.Record{Parent: "shop-ci", Result: "r", Name: name, UID: name, Type: kind, Value: []byte(value), Created: at}); err != nil {
		t.Fatal(err)
	}
}

// found gives the names of the records that a filter finds, or the refusal.
func found(t *testing.T, s *results.Server, filter string) string {
	t.Helper()
	status, _, body := get(t, s, recordsPath+"?"+url.Values{"filter": {filter}}.Encode())
	answer, ok := body.(map[string]any)
	if !ok {
		t.Fatalf("got %v", body)
	}
	if status != http.StatusOK {
		return answer["message"].(string)
	}
	var names []string
	if records, ok := answer["records"].([]any); ok {
		for _, r := range records {
			name := r.(map[string]any)["name"].(string)
			names = append(names, name[strings.LastIndexByte(name, '/')+1:])
		}
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// What SQL makes of a filter is not what CEL says: what is absent is neither equal
// nor unequal, what cannot be compared finds nothing, and so does a quote.
func TestFiltersMeanWhatTheirSQLMeans(t *testing.T) {
	t.Parallel()
	s := start(t, results.Config{})
	put(t, s, "a", "tekton.dev/v1.PipelineRun", `{"kind":"PipelineRun","metadata":{"name":"a_1","labels":{"app":"shop"}},"spec":{"retries":3,"deep":[{"x":"y"}]},"status":{"completionTime":"2026-11-20T10:00:00Z","conditions":[{"reason":"Failed"}]}}`)
	put(t, s, "b", "tekton.dev/v1.TaskRun", `{"kind":"TaskRun","metadata":{"name":"b.1"},"status":{"completionTime":"2026-11-21T10:00:00Z","conditions":[{"reason":"Succeeded"}]}}`)
	put(t, s, "c", "results.tekton.dev/v1alpha3.Log", `no JSON`)
	for filter, want := range map[string]string{
		``:                               "a b c",
		`data.metadata.name == "a_1"`:    "a",
		`data.metadata.name != "a_1"`:    "b", // not c, which has none
		`!(data.metadata.name == "a_1")`: "b",
		`data.metadata.name == "x" || data_type == TASK_RUN`:                "b",
		`data.metadata.nope == "x" || name == "c"`:                          "c",
		`data.spec.deep[0].x == "y"`:                                        "a",
		`data.metadata.labels.app == "shop"`:                                "a",
		`data.spec.retries == "3"`:                                          "a",
		`data.spec.retries == 3`:                                            "",
		`has(data.spec.retries)`:                                            "",
		`data.metadata.name == null`:                                        "",
		`data.metadata.name == "it's"`:                                      "",
		`data.metadata.name`:                                                "",
		`data.metadata.name in ["a_1", "b.1"]`:                              "a b",
		`data.metadata.name.startsWith("a_")`:                               "a",
		`data.metadata.name.startsWith("_")`:                                "a b", // a wildcard
		`data.metadata.name.endsWith("%1")`:                                 "a b",
		`data.metadata.name.contains("_")`:                                  "a",
		`data.metadata.name.matches("[.]1$")`:                               "b",
		`data.metadata.name.matches("[")`:                                   "",
		`data.status.completionTime > timestamp("2026-11-21T00:00:00Z")`:    "b",
		`data.status.completionTime > "2026-11-21"`:                         "b",
		`timestamp(data.metadata.name) > timestamp("2026-11-21T00:00:00Z")`: "", // one that is no time fails all
		`data.status.completionTime.getDate() == 20`:                        "a",
		`data.status.completionTime.getFullYear() == 2026 && data.status.completionTime.getDayOfMonth() == 20 && data.status.completionTime.getDate() >= 1`: "b",
		`parent + "x" == "shop-cix" && result_name == "r"`: "a b c",
		`data.kind == "PipelineRun"`:                       "data: not recognized field",
		`size(data.metadata.name) > 1`:                     "unsupported CEL: unsupported function size",
		`data_type == "PIPELINE_RUN"`:                      "",
	} {
		if got := found(t, s, filter); got != want {
			t.Errorf("%s finds %q, want %q", filter, got, want)
		}
	}
	for _, filter := range []string{`nope == "x"`, `data.metadata.name ==`, `data_type == 3`, `parent.size() ? true : false`} {
		if got := found(t, s, filter); !strings.Contains(got, "ERROR: <input>") && !strings.HasPrefix(got, "unsupported CEL") {
			t.Errorf("%s: got %q", filter, got)
		}
	}
}

func FuzzFilter(f *testing.F) {
	for _, seed := range []string{`data.a.b == "x"`, `!(a in [1, 2])`, `data.x[0].y.matches("(")`, `timestamp(data.a.b) > timestamp("x")`, `annotations["k"] == "v"`, `{1: 2}[1] == 2`, `[1][0] == 1`, `data[0] == data`, `-1 < 2u`} {
		f.Add(seed)
	}
	s, err := results.Start(results.Config{})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(s.Stop)
	if err := s.PutRecord(results.Record{Parent: "p", Result: "r", Name: "n", Type: "t", Value: []byte(`{"a":{"b":"x"},"x":[{"y":1}]}`)}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, filter string) {
		for _, path := range []string{recordsPath, "/apis/results.tekton.dev/v1alpha2/parents/-/results"} {
			if status, _, _ := get(t, s, path+"?"+url.Values{"filter": {filter}}.Encode()); status != http.StatusOK && status != http.StatusBadRequest {
				t.Errorf("%q is answered with %d", filter, status)
			}
		}
	})
}
