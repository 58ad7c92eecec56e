package results_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/standin/results"
)

func TestWhereAnObjectIsArchived(t *testing.T) {
	t.Parallel()
	s := start(t, results.Config{})
	for metadata, want := range map[string]string{
		`"uid":"u-1"`: "u-1/u-1",
		`"uid":"u-2","labels":{"triggers.tekton.dev/triggers-eventid":"event"}`:                                                                                              "event/u-2",
		`"uid":"u-3","ownerReferences":[{"kind":"PipelineRun","uid":"u-1"}]`:                                                                                                 "u-1/u-3",
		`"uid":"u-4","annotations":{"results.tekton.dev/result":"shop-ci/results/old","results.tekton.dev/record":"shop-ci/results/old/records/rec"}`:                        "old/rec",
		`"uid":"u-5","ownerReferences":[{"kind":"CustomRun","uid":"x"}]`:                                                                                                     "u-5/u-5",
		`"uid":"u-6","annotations":{"results.tekton.dev/result":"shop-ci/results/old"},"labels":{"triggers.tekton.dev/triggers-eventid":"event"},"generateName":"whatever-"`: "old/u-6",
	} {
		object := `{"kind":"PipelineRun","apiVersion":"tekton.dev/v1","metadata":{"namespace":"shop-ci","creationTimestamp":"2026-11-20T12:00:00Z",` + metadata + `}}`
		result, err := s.Archive([]byte(object))
		if err != nil {
			t.Fatal(err)
		}
		name, record, _ := strings.Cut(want, "/")
		status, _, body := get(t, s, fmt.Sprintf("/apis/results.tekton.dev/v1alpha2/parents/shop-ci/results/%s/records/%s", name, record))
		if result != name || status != http.StatusOK {
			t.Errorf("%s: in Result %s, %d %v", metadata, result, status, body)
			continue
		}
		value, err := base64.StdEncoding.DecodeString(body.(map[string]any)["data"].(map[string]any)["value"].(string))
		if err != nil || string(value) != object {
			t.Errorf("got %s, %v", value, err)
		}
	}
	for _, broken := range []string{"{", `{}`, `{"kind":"PipelineRun","metadata":{"namespace":"shop-ci","uid":"x"}}`} {
		if _, err := s.Archive([]byte(broken)); err == nil {
			t.Errorf("%s was archived", broken)
		}
	}
}

func TestFaults(t *testing.T) {
	t.Parallel()
	s := start(t, results.Config{})
	put(t, s, "a", "x", `{}`)
	called := false
	s.SetFaults(
		results.Fault{Path: "/nowhere", Status: 418},
		results.Fault{Path: "records", Skip: 1, Times: 1, Status: 503, Body: "away"},
		results.Fault{Path: "records", Before: func() { called = true }},
	)
	var got []int
	for range 3 {
		status, _, _ := get(t, s, recordsPath)
		got = append(got, status)
	}
	if !slices.Equal(got, []int{200, 503, 200}) || !called {
		t.Errorf("got %v, called: %v", got, called)
	}
	if requests := s.Requests(); len(requests) != 3 || requests[0].Parent != "-" || requests[0].Kind != "records" || requests[0].URI != recordsPath {
		t.Errorf("got %+v", requests)
	}
	s.Reset()
	if n := len(s.Requests()); n != 0 {
		t.Errorf("%d requests are left", n)
	}
}

func TestWhoMayRead(t *testing.T) {
	t.Parallel()
	s := start(t, results.Config{Token: "right"})
	if status, _, body := get(t, s, recordsPath); status != http.StatusUnauthorized || body.(map[string]any)["code"] != float64(16) {
		t.Errorf("got %d %v", status, body)
	}
}

// A page of more than gRPC carries is refused, and asked for in parts it is not.
func TestAPageThatIsTooLarge(t *testing.T) {
	t.Parallel()
	s := start(t, results.Config{MaxAnswer: 1000})
	value := `"` + strings.Repeat("x", 180) + `"`
	for n := range 6 {
		put(t, s, fmt.Sprintf("r-%d", n), "x", value)
	}
	if status, _, body := get(t, s, recordsPath); status != http.StatusTooManyRequests || body.(map[string]any)["code"] != float64(8) {
		t.Errorf("got %d", status)
	}
	if status, _, _ := get(t, s, recordsPath+"?page_size=5"); status != http.StatusOK {
		t.Errorf("got %d", status)
	}
}

func TestAParentThatIsDropped(t *testing.T) {
	t.Parallel()
	s := start(t, results.Config{})
	for _, namespace := range []string{"shop-ci", "shop"} {
		object := `{"kind":"PipelineRun","apiVersion":"tekton.dev/v1","metadata":{"namespace":"` + namespace + `","uid":"u","creationTimestamp":"2026-11-20T12:00:00Z"}}`
		if _, err := s.Archive([]byte(object)); err != nil {
			t.Fatal(err)
		}
		if err := s.ArchiveLog(namespace, "u", "t", []byte("x"), at); err != nil {
			t.Fatal(err)
		}
	}
	s.Drop("shop")
	for path, want := range map[string]int{"shop/results/u": 404, "shop/results/u/logs/t": 404, "shop-ci/results/u/records/u": 200, "shop-ci/results/u/logs/t": 200} {
		if status, _, _ := get(t, s, "/apis/results.tekton.dev/v1alpha2/parents/"+path); status != want {
			t.Errorf("%s: got %d", path, status)
		}
	}
	_, _, body := get(t, s, recordsPath)
	if records := body.(map[string]any)["records"].([]any); len(records) != 2 {
		t.Errorf("%d records are left", len(records))
	}
}
