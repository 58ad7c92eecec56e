package e2e_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/api"
)

// paged gives the path of every operation that is served and comes in pages.
func paged() []string {
	var paths []string
	for _, op := range api.Operations() {
		if !op.Planned && slices.ContainsFunc(op.QueryParams, func(p api.Param) bool { return p.Name == "continue" }) {
			paths = append(paths, calls[op.ID])
		}
	}
	return paths
}

// rule: R283
func TestLimitIsOneToAThousand(t *testing.T) {
	for _, list := range paged() {
		t.Run(list, func(t *testing.T) { limits(t, list) })
	}
}

func limits(t *testing.T, list string) {
	t.Helper()
	for limit, status := range map[string]int{
		"1": 200, "1000": 200, "0": 400, "1001": 400, "-1": 400, "": 400, "x": 400, "1.5": 400, "1e2": 400, "%31": 200, "99999999999999999999": 400, "0x1": 400, " 1": 400,
	} {
		path := list + "?limit=" + strings.ReplaceAll(limit, " ", "%20")
		if a := get(t, path, as("reader")); a.status != status {
			t.Errorf("%s: got %d, want %d", path, a.status, status)
		}
	}
	refused(t, get(t, list+"?limit=1&limit=2", as("reader")), 400, "GP-API-400")
}

// walk reads every page and gives the names in order.
func walk(t *testing.T, path string, limit int, between func(page int)) []string {
	t.Helper()
	var names []string
	next := fmt.Sprintf("%s?limit=%d", path, limit)
	for page := 1; ; page++ {
		l := live(t, next)
		if len(l.PipelineRuns) > limit {
			t.Fatalf("a page of %d", len(l.PipelineRuns))
		}
		for _, o := range l.PipelineRuns {
			names = append(names, named(o))
		}
		if l.Continue == "" {
			return names
		}
		between(page)
		next = fmt.Sprintf("%s?limit=%d&continue=%s", path, limit, url.QueryEscape(l.Continue))
	}
}

// rule: R285, R287, R289
func TestPagesAreSortedAndEndWithoutContinue(t *testing.T) {
	for i := range 7 {
		create(t, pipelineRuns, "PipelineRun", []string{"app-shop-cicd", "app-gate-api-cicd"}[i%2], fmt.Sprintf("e2e-page-%d", i), nil)
	}
	whole := fresh(t, "/v1/live", has("app-shop-cicd/e2e-page-6"))
	if whole.Continue != "" {
		t.Error("the whole list has a continue")
	}
	var want []string
	for _, o := range whole.PipelineRuns {
		want = append(want, named(o))
	}
	slices.SortFunc(want, byNamespaceThenName)
	for _, limit := range []int{1, 3, len(want), 1000} {
		if got := walk(t, "/v1/live", limit, func(int) {}); !slices.Equal(got, want) {
			t.Errorf("limit %d: got %v, want %v", limit, got, want)
		}
	}
}

func byNamespaceThenName(a, b string) int {
	return slices.Compare(strings.Split(a, "/"), strings.Split(b, "/"))
}

// rule: R288
func TestWhatComesAndGoesBetweenPagesRepeatsAndSkipsNothing(t *testing.T) {
	for i := range 6 {
		create(t, pipelineRuns, "PipelineRun", "app-shop-cicd", fmt.Sprintf("e2e-step-%d", i), nil)
	}
	fresh(t, "/v1/live", has("app-shop-cicd/e2e-step-5"))
	before := walk(t, "/v1/live", 1000, func(int) {})
	c := cluster(t).Resource(pipelineRuns).Namespace("app-shop-cicd")
	got := walk(t, "/v1/live", 4, func(page int) {
		if page != 1 {
			return
		}
		// One that was served, or is about to be, goes; one comes before all.
		if err := c.Delete(t.Context(), "e2e-step-2", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		create(t, pipelineRuns, "PipelineRun", "app-boarding-api-cicd", "a-first-of-all", nil)
		fresh(t, "/v1/live", has("app-boarding-api-cicd/a-first-of-all"))
	})
	seen := map[string]int{}
	for _, n := range got {
		seen[n]++
	}
	for _, n := range before {
		if n != "app-shop-cicd/e2e-step-2" && seen[n] != 1 {
			t.Errorf("%s was given %d times", n, seen[n])
		}
	}
}

func TestAContinueIsGoodForItsOwnListOnly(t *testing.T) {
	token := live(t, "/v1/live?limit=1").Continue
	if token == "" {
		t.Fatal("a page without more")
	}
	flip := "A"
	if token[len(token)/2] == 'A' {
		flip = "B"
	}
	for name, query := range map[string]string{
		"another app's":  "limit=1&app=shop&continue=" + url.QueryEscape(token),
		"none of ours":   "limit=1&continue=abc",
		"a changed one":  "limit=1&continue=" + url.QueryEscape(token[:len(token)/2]+flip+token[len(token)/2+1:]),
		"an empty one":   "limit=1&continue=",
		"a huge one":     "limit=1&continue=" + strings.Repeat("a", 5000),
		"two of them":    "limit=1&continue=" + url.QueryEscape(token) + "&continue=" + url.QueryEscape(token),
		"without a size": "continue=" + url.QueryEscape(token),
	} {
		t.Run(name, func(t *testing.T) {
			refused(t, get(t, "/v1/live?"+query, as("reader")), 400, "GP-API-400")
		})
	}
}

// rule: R290, R291, R292
func TestAPollerThatHasTheAnswerGets304(t *testing.T) {
	for _, list := range paged() {
		for _, encoding := range []string{"identity", "gzip"} {
			t.Run(list+" "+encoding, func(t *testing.T) { conditional(t, list+"?app=sky-marshall", encoding) })
		}
		t.Run(list+" in two variants", func(t *testing.T) { variants(t, list+"?app=sky-marshall") })
	}
}

func conditional(t *testing.T, path, encoding string) {
	t.Helper()
	accept := header("Accept-Encoding", encoding)
	a := ok(t, get(t, path, as("reader"), accept))
	tag := a.header.Get("ETag")
	if !strings.HasPrefix(tag, `"`) {
		t.Fatalf("the ETag is %q, not a strong one", tag)
	}
	if cc := a.header.Get("Cache-Control"); cc != "private, no-cache" {
		t.Errorf("Cache-Control: %q", cc)
	}
	if !strings.Contains(a.header.Get("Vary"), "Accept-Encoding") {
		t.Errorf("Vary: %q", a.header.Get("Vary"))
	}
	if got := a.header.Get("Content-Encoding"); (got == "gzip") != (encoding == "gzip") {
		t.Errorf("Content-Encoding: %q", got)
	}
	for _, match := range []string{tag, `"other", ` + tag, "W/" + tag, "*"} {
		n := get(t, path, as("reader"), accept, header("If-None-Match", match))
		if n.status != http.StatusNotModified || len(n.body) != 0 || n.header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: got %d with %d bytes, ETag %q", match, n.status, len(n.body), n.header.Get("ETag"))
		}
	}
	ok(t, get(t, path, as("reader"), accept, header("If-None-Match", `"other"`)))
	refused(t, get(t, path, as("stranger"), accept, header("If-None-Match", tag)), 403, "GP-AUTHZ-001")
	refused(t, get(t, path, accept, header("If-None-Match", tag)), 401, "GP-AUTH-001")
}

// variants are of one answer and told apart by their tags.
func variants(t *testing.T, path string) {
	t.Helper()
	plain := ok(t, get(t, path, as("reader")))
	zipped := ok(t, get(t, path, as("reader"), header("Accept-Encoding", "gzip")))
	if plain.header.Get("ETag") == zipped.header.Get("ETag") {
		t.Error("two variants with one strong ETag")
	}
	if string(uncompressed(t, zipped)) != string(plain.body) {
		t.Error("the variants are not of one answer")
	}
}

// rule: R291
func TestAChangeEndsThe304s(t *testing.T) {
	const path = "/v1/live?app=sky-marshall"
	tag := ok(t, get(t, path, as("reader"))).header.Get("ETag")
	create(t, pipelineRuns, "PipelineRun", "app-sky-marshall-cicd", "e2e-etag", nil)
	eventually(t, "the list has changed", func() bool {
		return get(t, path, as("reader"), header("If-None-Match", tag)).status == http.StatusOK
	})
}
