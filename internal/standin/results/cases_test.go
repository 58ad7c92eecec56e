package results_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/internal/standin/results"
)

// recorded is a request that was put to a real server, and its answer.
type recorded struct {
	Case    string          `json:"case"`
	Request string          `json:"request"`
	Status  int             `json:"status"`
	Type    string          `json:"contentType"`
	Body    json.RawMessage `json:"body"`
}

func recordedAnswers(t *testing.T) []recorded {
	t.Helper()
	cases := os.Getenv("GLIDEPATH_CASES")
	if cases == "" {
		t.Skip("GLIDEPATH_CASES names no folder of shared cases")
	}
	raw, err := os.ReadFile(filepath.Join(cases, "results", "answers.json"))
	if err != nil {
		t.Fatal(err)
	}
	var all []recorded
	if err := json.Unmarshal(raw, &all); err != nil {
		t.Fatal(err)
	}
	return all
}

// item is a Record or Result as the real server sent it.
type item struct {
	Name        string            `json:"name"`
	UID         string            `json:"uid"`
	Etag        string            `json:"etag"`
	Created     time.Time         `json:"create_time"`
	Updated     time.Time         `json:"update_time"`
	Annotations map[string]string `json:"annotations"`
	Summary     *results.Summary  `json:"summary"`
	Data        *struct {
		Type  string `json:"type"`
		Value string `json:"value"`
	} `json:"data"`
}

// restore stores what the answers tell of.
func restore(t *testing.T, s *results.Server, all []recorded) {
	t.Helper()
	for _, a := range all {
		var body struct {
			Records, Results []item
		}
		if a.Status != http.StatusOK {
			continue
		}
		_ = json.Unmarshal(a.Body, &body) // some answers are texts
		for _, i := range append(body.Records, body.Results...) {
			if parts := strings.Split(i.Name, "/"); i.UID != "" && (len(parts) == 3 || parts[3] == "records") {
				store(t, s, parts, i)
			}
		}
		_, rest, isLog := strings.Cut(a.Request, "/logs/")
		if text := ""; isLog && json.Unmarshal(a.Body, &text) == nil {
			parts := strings.Split(a.Request, "/")
			s.PutLog(parts[5], parts[7], rest, []byte(strings.TrimSuffix(text, "\n"))) // the server adds one
		}
	}
}

func store(t *testing.T, s *results.Server, parts []string, i item) {
	t.Helper()
	if len(parts) == 3 {
		err := s.PutResult(results.Result{
			Parent: parts[0], Name: parts[2], UID: i.UID, Etag: i.Etag, Created: i.Created, Updated: i.Updated, Annotations: i.Annotations, Summary: i.Summary,
		})
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	value, err := base64.StdEncoding.DecodeString(i.Data.Value)
	if err != nil {
		t.Fatal(err)
	}
	err = s.PutRecord(results.Record{
		Parent: parts[0], Result: parts[2], Name: parts[4], UID: i.UID, Etag: i.Etag, Created: i.Created, Updated: i.Updated, Type: i.Data.Type, Value: value,
	})
	if err != nil {
		t.Fatal(err)
	}
}

// get asks the stand-in and gives the status, the type and the body: JSON where it
// is some, text otherwise.
func get(t *testing.T, s *results.Server, target string) (status int, kind string, body any) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL()+target, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = resp.Body.Close() }()
	raw, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if json.Unmarshal(raw, &body) != nil {
		body = string(raw)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), body
}

// escaped gives a recorded request with its query as it goes over the wire.
func escaped(request string) string {
	target := strings.TrimPrefix(request, "GET ")
	path, query, ok := strings.Cut(target, "?")
	if !ok {
		return target
	}
	values := url.Values{}
	for pair := range strings.SplitSeq(strings.ReplaceAll(query, "&&", "\x00"), "&") {
		name, value, _ := strings.Cut(pair, "=")
		values.Set(name, strings.ReplaceAll(value, "\x00", "&&"))
	}
	return path + "?" + values.Encode()
}

func start(t *testing.T, cfg results.Config) *results.Server {
	t.Helper()
	s, err := results.Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Stop)
	return s
}

func TestEveryRequestIsAnsweredAsByARealServer(t *testing.T) {
	t.Parallel()
	all := recordedAnswers(t)
	s := start(t, results.Config{})
	restore(t, s, all)
	answered := 0
	for _, a := range all {
		if !strings.HasPrefix(a.Request, "GET ") {
			continue // told by the walk below
		}
		answered++
		t.Run(a.Case, func(t *testing.T) {
			status, kind, body := get(t, s, escaped(a.Request))
			var want any
			if err := json.Unmarshal(a.Body, &want); err != nil {
				t.Fatal(err)
			}
			if status != a.Status || kind != a.Type {
				t.Errorf("got %d %s, want %d %s", status, kind, a.Status, a.Type)
			}
			if diff := cmp.Diff(want, body); diff != "" {
				t.Errorf("body (-real +ours):\n%s", diff)
			}
		})
	}
	if answered < 60 {
		t.Errorf("only %d requests were put", answered)
	}
}

func TestAPagedWalkGoesAsAtARealServer(t *testing.T) {
	t.Parallel()
	all := recordedAnswers(t)
	s := start(t, results.Config{})
	restore(t, s, all)
	const base = "/apis/results.tekton.dev/v1alpha2/parents/-/results/-/records?"
	walked := false
	first := ""
	for _, a := range all {
		switch a.Case {
		case "a paged walk":
			walked = true
			first = walk(t, s, base, a)
		case "a token reused with another filter and size":
			status, _, body := get(t, s, base+url.Values{"page_size": {"6"}, "page_token": {first}}.Encode())
			var text string
			if err := json.Unmarshal(a.Body, &text); err != nil {
				t.Fatal(err)
			}
			var want any
			if err := json.Unmarshal([]byte(text), &want); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(want, body); diff != "" || status != a.Status {
				t.Errorf("got %d, want %d; body (-real +ours):\n%s", status, a.Status, diff)
			}
		}
	}
	if !walked {
		t.Error("the shared cases have no walk")
	}
}

// walk follows the pages of a recorded walk, and gives the token of its second.
func walk(t *testing.T, s *results.Server, base string, a recorded) (first string) {
	t.Helper()
	var pages []struct {
		Status int
		Names  []string
		Next   string `json:"next_page_token"`
	}
	if err := json.Unmarshal(a.Body, &pages); err != nil {
		t.Fatal(err)
	}
	token := ""
	for i, want := range pages {
		target := base + strings.TrimPrefix(escaped("?"+a.Request), "?")
		if token != "" {
			target += "&page_token=" + url.QueryEscape(token)
		}
		status, _, body := get(t, s, target)
		raw, err := json.Marshal(body)
		if err != nil {
			t.Fatal(err)
		}
		var page struct {
			Records []item
			Next    string `json:"next_page_token"`
		}
		if err := json.Unmarshal(raw, &page); err != nil {
			t.Fatal(err)
		}
		var names []string
		for _, r := range page.Records {
			names = append(names, r.Name)
		}
		if status != want.Status || page.Next != want.Next || !cmp.Equal(names, want.Names) {
			t.Errorf("page %d: got %d %v, next %q; want %d %v, next %q", i, status, names, page.Next, want.Status, want.Names, want.Next)
		}
		if token = page.Next; i == 0 {
			first = token
		}
	}
	if len(pages) < 2 {
		t.Error("the walk has one page")
	}
	return first
}
