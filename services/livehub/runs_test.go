package livehub

import (
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/paging"
	"hangar.io/glidepath/internal/problem"
)

// rule: R016
func TestListLiveRunsIsTheFleetsOrOneApps(t *testing.T) {
	c := newCluster(t)
	c.addRuns("app-shop-cicd/a", "app-gate-cicd/a", "reporting/a")
	c.addTasks("a", "app-shop-cicd/a-unit")
	p := newReplica(t, c, "")
	if got, want := names(t, p.runs("").ok(t), "pipelineRuns"), []string{"app-gate-cicd/a", "app-shop-cicd/a", "reporting/a"}; !slices.Equal(got, want) {
		t.Errorf("the fleet shows %v, want %v", got, want)
	}
	of := p.do(p.request("/v1/live?app=shop", claims("listLiveRuns", aboutShop))).ok(t)
	if got, want := names(t, of, "pipelineRuns"), []string{"app-shop-cicd/a"}; !slices.Equal(got, want) {
		t.Errorf("the app shows %v, want %v", got, want)
	}
	if got := c.lists(); got["pipelineruns"] != 1 || got["app-shop-cicd/pipelineruns"] != 1 || len(got) != 2 {
		t.Errorf("the cluster was asked for %v", got)
	}
}

// rule: R289
func TestWithoutLimitTheListIsWholeAndInTheOrderOfTheCluster(t *testing.T) {
	c := newCluster(t)
	var all []string
	for i := range 300 {
		// As strings, "a-b/..." comes before "a/...".
		all = append(all, fmt.Sprintf("%s/run-%03d", []string{"a", "a-b", "a.b"}[i%3], i))
	}
	c.addRuns(all...)
	body := newReplica(t, c, "").runs("").ok(t)
	slices.Sort(all)
	if got := names(t, body, "pipelineRuns"); !slices.Equal(got, all) {
		t.Errorf("%d runs in another order: %v", len(got), got[:5])
	}
	if strings.Contains(string(body), `"continue"`) {
		t.Error("a whole list has a continue")
	}
}

func TestAListOfSeveralPagesAtTheSourceIsWhole(t *testing.T) {
	c := newCluster(t)
	var all []string
	for i := range 1201 {
		all = append(all, fmt.Sprintf("ns/run-%04d", i))
	}
	c.mu.Lock()
	for _, n := range all {
		c.objects["pipelineruns"] = append(c.objects["pipelineruns"], object{namespace: "ns", name: n[3:], spec: "{}"})
	}
	c.mu.Unlock()
	if got := names(t, newReplica(t, c, "").runs("").ok(t), "pipelineRuns"); !slices.Equal(got, all) {
		t.Errorf("%d of %d runs", len(got), len(all))
	}
}

// rule: R283
func TestLimitIsAWholeNumberFromOneToAThousand(t *testing.T) {
	c := newCluster(t)
	c.addRuns("ns/a")
	p := newReplica(t, c, "")
	for _, limit := range []string{"1", "2", "999", "1000", "007"} {
		p.runs("?limit=" + limit).ok(t)
	}
	for _, limit := range []string{"0", "-1", "1001", "2147483648", "99999999999999999999", "", "x", "1.0", "1e2", "0x10", "5,6", "ten", "%201", "1%00", "１"} {
		t.Run(limit, func(t *testing.T) {
			b := p.runs("?limit="+limit).expectProblem(t, problem.BadRequest)
			if !strings.Contains(b.Message, "limit") || !strings.Contains(b.Message, "1000") {
				t.Errorf("the message is %q", b.Message)
			}
		})
	}
}

// walk reads all pages from the first one on. between is called after each.
func walk(t *testing.T, p *replica, limit int, between func(page int)) []string {
	t.Helper()
	var all []string
	token := ""
	for page := 1; ; page++ {
		query := fmt.Sprintf("?limit=%d", limit)
		if token != "" {
			query += "&continue=" + token
		}
		body := p.runs(query).ok(t)
		got := names(t, body, "pipelineRuns")
		if len(got) > limit || (len(got) == 0 && page > 1) {
			t.Fatalf("page %d has %d runs", page, len(got))
		}
		all = append(all, got...)
		var answer struct{ Continue *string }
		if err := json.Unmarshal(body, &answer); err != nil {
			t.Fatal(err)
		}
		if answer.Continue == nil {
			return all
		}
		if token = *answer.Continue; token == "" || url.QueryEscape(token) != token || len(token) > paging.MaxToken {
			t.Fatalf("page %d has the token %q", page, token)
		}
		if between != nil {
			between(page)
		}
	}
}

// rule: R285, R287
func TestPagesAreSortedAndTheLastOneSaysSo(t *testing.T) {
	c := newCluster(t)
	c.addRuns("b/a", "a-b/a", "a/c", "a/b-c", "a/b", "a/a")
	p := newReplica(t, c, "")
	want := []string{"a/a", "a/b", "a/b-c", "a/c", "a-b/a", "b/a"}
	for limit := 1; limit <= 8; limit++ {
		pages := 1
		if got := walk(t, p, limit, func(int) { pages++ }); !slices.Equal(got, want) {
			t.Errorf("pages of %d give %v", limit, got)
		}
		if most := (len(want) + limit - 1) / limit; pages != most {
			t.Errorf("pages of %d were %d, want %d: the last one has items and no continue", limit, pages, most)
		}
	}
	if got := walk(t, newReplica(t, newCluster(t), ""), 5, nil); len(got) != 0 {
		t.Errorf("an empty cluster has %v", got)
	}
}

// rule: R288
func TestWhatComesOrGoesBetweenPagesMovesNoOtherItem(t *testing.T) {
	for _, tc := range []struct {
		name   string
		change func(c *cluster)
		want   []string
	}{
		{"one comes before the position", func(c *cluster) { c.addRuns("a/a0") }, []string{"a/a", "a/b", "a/c", "a/d", "b/a"}},
		{"one comes behind it", func(c *cluster) { c.addRuns("a/bb") }, []string{"a/a", "a/b", "a/bb", "a/c", "a/d", "b/a"}},
		{"one goes that was given", func(c *cluster) { c.remove("pipelineruns", "a/a") }, []string{"a/a", "a/b", "a/c", "a/d", "b/a"}},
		{"the last one given goes", func(c *cluster) { c.remove("pipelineruns", "a/b") }, []string{"a/a", "a/b", "a/c", "a/d", "b/a"}},
		{"the next one goes", func(c *cluster) { c.remove("pipelineruns", "a/c") }, []string{"a/a", "a/b", "a/d", "b/a"}},
		{"all that is left goes but for one", func(c *cluster) {
			c.remove("pipelineruns", "a/c")
			c.remove("pipelineruns", "a/d")
		}, []string{"a/a", "a/b", "b/a"}},
		{"a namespace comes before, and one behind", func(c *cluster) { c.addRuns("0/z", "a-b/z") }, []string{"a/a", "a/b", "a/c", "a/d", "a-b/z", "b/a"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			c := newCluster(t)
			c.addRuns("a/a", "a/b", "a/c", "a/d", "b/a")
			// Each page on a replica of its own, with nothing kept: as if more
			// than two seconds had passed.
			first := newReplica(t, c, "")
			got := names(t, first.runs("?limit=2").ok(t), "pipelineRuns")
			var answer struct{ Continue string }
			if err := json.Unmarshal(first.runs("?limit=2").ok(t), &answer); err != nil {
				t.Fatal(err)
			}
			tc.change(c)
			for answer.Continue != "" {
				body := newReplica(t, c, "").runs("?limit=2&continue=" + answer.Continue).ok(t)
				got = append(got, names(t, body, "pipelineRuns")...)
				answer.Continue = ""
				if err := json.Unmarshal(body, &answer); err != nil {
					t.Fatal(err)
				}
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("the pages give %v, want %v", got, tc.want)
			}
		})
	}
}

func TestNothingIsLeftBehindAPositionAtTheEnd(t *testing.T) {
	c := newCluster(t)
	c.addRuns("a/a", "a/b", "a/c")
	p := newReplica(t, c, "")
	var answer struct{ Continue string }
	if err := json.Unmarshal(p.runs("?limit=2").ok(t), &answer); err != nil {
		t.Fatal(err)
	}
	c.remove("pipelineruns", "a/c")
	if got := string(newReplica(t, c, "").runs("?limit=2&continue=" + answer.Continue).ok(t)); got != `{"pipelineRuns":[]}` {
		t.Errorf("got %s", got)
	}
}

func TestAContinueThatIsNotOfThisListIsRefused(t *testing.T) {
	c := newCluster(t)
	c.addRuns(shopNS+"/a", shopNS+"/b", "other/a", "other/b")
	p := newReplica(t, c, "")
	token := func(r response) string {
		var answer struct{ Continue string }
		if err := json.Unmarshal(r.ok(t), &answer); err != nil || answer.Continue == "" {
			t.Fatalf("no continue in %s: %v", r.body, err)
		}
		return answer.Continue
	}
	fleet := token(p.runs("?limit=1"))
	ofShop := token(p.do(p.request("/v1/live?app=shop&limit=1", claims("listLiveRuns", aboutShop))))
	last := []byte(fleet)
	last[len(last)-3] ^= 1
	for name, query := range map[string]string{
		"one of an app for the fleet":     "?limit=1&continue=" + ofShop,
		"another limit":                   "?limit=2&continue=" + fleet,
		"no limit":                        "?continue=" + fleet,
		"an empty one":                    "?limit=1&continue=",
		"a changed one":                   "?limit=1&continue=" + string(last),
		"a cut one":                       "?limit=1&continue=" + fleet[:20],
		"a long one":                      "?limit=1&continue=" + strings.Repeat("A", 5000),
		"a made up one":                   "?limit=1&continue=WyJhIiwiYiJd",
		"characters that a token has not": "?limit=1&continue=%00%ff",
	} {
		t.Run(name, func(t *testing.T) {
			b := p.runs(query).expectProblem(t, problem.BadRequest)
			if !strings.Contains(b.Message, "continue") || b.Hint == "" {
				t.Errorf("the answer is %+v", b)
			}
			if name == "no limit" && !strings.Contains(b.Message, "without limit") {
				t.Errorf("the message is %q", b.Message)
			}
		})
	}
	t.Run("one of the fleet for an app", func(t *testing.T) {
		p.do(p.request("/v1/live?app=shop&limit=1&continue="+fleet, claims("listLiveRuns", aboutShop))).expectProblem(t, problem.BadRequest)
	})
	t.Run("one of an app for the app that was made again", func(t *testing.T) {
		again := claims("listLiveRuns", about(shop, shopNS, "another-uid"))
		p.do(p.request("/v1/live?app=shop&limit=1&continue="+ofShop, again)).expectProblem(t, problem.BadRequest)
	})
	t.Run("its own list on another replica", func(t *testing.T) {
		newReplica(t, c, "").runs("?limit=1&continue=" + fleet).ok(t)
	})
}
