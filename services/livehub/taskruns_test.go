package livehub

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/problem"
)

// rule: R017, R259
func TestListLiveTaskRunsIsThoseOfTheNamedRuns(t *testing.T) {
	c := newCluster(t)
	c.addTasks("build-1", shopNS+"/build-1-unit", "other/x")
	c.addTasks("build-2", shopNS+"/build-2-unit")
	c.addTasks("build-11", shopNS+"/build-11-unit")
	c.addTasks("", shopNS+"/build-1-alone")
	p := newReplica(t, c, "")
	for query, want := range map[string][]string{
		"?pipelineRuns=build-1":                 {shopNS + "/build-1-unit", "other/x"},
		"?pipelineRuns=build-2,build-1":         {shopNS + "/build-1-unit", shopNS + "/build-2-unit", "other/x"},
		"?pipelineRuns=build-1,build-2,build-1": {shopNS + "/build-1-unit", shopNS + "/build-2-unit", "other/x"},
		"?pipelineRuns=build-1%2Cbuild-2":       {shopNS + "/build-1-unit", shopNS + "/build-2-unit", "other/x"},
		"?pipelineRuns=none":                    {},
	} {
		if got := names(t, p.tasks(query).ok(t), "taskRuns"); !slices.Equal(got, want) {
			t.Errorf("%s gives %v, want %v", query, got, want)
		}
	}
	of := p.do(p.request("/v1/live/taskruns?app=shop&pipelineRuns=build-1", claims("listLiveTaskRuns", aboutShop))).ok(t)
	if got := names(t, of, "taskRuns"); !slices.Equal(got, []string{shopNS + "/build-1-unit"}) {
		t.Errorf("the app's are %v", got)
	}
}

func TestTheOrderOfTheNamesMakesNoOtherList(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	for _, query := range []string{"a,b", "b,a", "a,b,b,a"} {
		p.tasks("?pipelineRuns=" + query).ok(t)
	}
	p.tasks("?pipelineRuns=a").ok(t)
	if got := c.lists(); got["taskruns"] != 2 || len(got) != 1 {
		t.Errorf("the cluster was asked for %v", got)
	}
}

// rule: R262
func TestWithoutNamesTheListIsEmptyAndNothingIsAsked(t *testing.T) {
	c := newCluster(t)
	c.addTasks("a", "ns/a")
	p := newReplica(t, c, "")
	for _, query := range []string{"", "?pipelineRuns=", "?other=a"} {
		if got := string(p.tasks(query).ok(t)); got != `{"taskRuns":[]}` {
			t.Errorf("%q gives %s", query, got)
		}
	}
	if got := c.lists(); len(got) != 0 {
		t.Errorf("the cluster was asked for %v", got)
	}
}

// manyNames gives n distinct names.
func manyNames(n int) []string {
	var all []string
	for i := range n {
		all = append(all, fmt.Sprintf("run-%03d", i))
	}
	return all
}

// rule: R260
func TestAtMostTwoHundredDistinctNamesAreTaken(t *testing.T) {
	p := newReplica(t, newCluster(t), "")
	most := manyNames(200)
	p.tasks("?pipelineRuns=" + strings.Join(most, ",")).ok(t)
	p.tasks("?pipelineRuns=" + strings.Join(append(slices.Clone(most), most[7], most[8]), ",")).ok(t)
	b := p.tasks("?pipelineRuns="+strings.Join(manyNames(201), ",")).expectProblem(t, problem.BadRequest)
	if !strings.Contains(b.Message, "pipelineRuns") || !strings.Contains(b.Message, "201") || !strings.Contains(b.Message, "200") {
		t.Errorf("the message is %q", b.Message)
	}
}

// rule: R261
func TestANameIsALowerCaseDNSName(t *testing.T) {
	c := newCluster(t)
	p := newReplica(t, c, "")
	for _, name := range []string{"a", "1", "a-b", "a.b", "a.b-c.d", strings.Repeat("a", 63)} {
		p.tasks("?pipelineRuns=ok," + name).ok(t)
	}
	asked := c.lists()["taskruns"]
	for _, name := range []string{
		strings.Repeat("a", 64), "A", "aB", "a_b", "-a", "a-", ".a", "a.", "a..b", "a b", "a%20b", "a/b", "a)", "a;b", "é", "%00", "a%0Ab", "!a", "",
		strings.Repeat("x", 5000),
	} {
		t.Run(name, func(t *testing.T) {
			b := p.tasks("?pipelineRuns="+strings.ReplaceAll(name, " ", "%20")+",ok").expectProblem(t, problem.BadRequest)
			if !strings.Contains(name, ";") && (!strings.Contains(b.Message, "pipelineRuns") || b.Hint == "" || len(b.Message) > 200) {
				t.Errorf("the answer is %+v", b)
			}
		})
	}
	if got := c.lists()["taskruns"]; got != asked {
		t.Errorf("the cluster was asked %d times for bad names", got-asked)
	}
}
