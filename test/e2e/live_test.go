package e2e_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
)

var (
	pipelineRuns = schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "pipelineruns"}
	taskRuns     = schema.GroupVersionResource{Group: "tekton.dev", Version: "v1", Resource: "taskruns"}
)

// cluster is a plain client, to compare the gateway's answers with.
func cluster(t *testing.T) dynamic.Interface {
	t.Helper()
	c, err := dynamic.NewForConfig(gw.APIServer.Admin)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// create makes an object of a kind and has it deleted with the test.
func create(t *testing.T, gvr schema.GroupVersionResource, kind, namespace, name string, labels map[string]string) {
	t.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "tekton.dev/v1", "kind": kind}}
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(labels)
	c := cluster(t).Resource(gvr).Namespace(namespace)
	if _, err := c.Create(t.Context(), o, metav1.CreateOptions{FieldManager: "e2e"}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Delete(cleanupContext(t), name, metav1.DeleteOptions{}); err != nil && !strings.Contains(err.Error(), "not found") {
			t.Error(err)
		}
	})
}

type object = map[string]any

func named(o object) string {
	m, _ := o["metadata"].(object)
	return fmt.Sprint(m["namespace"], "/", m["name"])
}

type liveAnswer struct {
	PipelineRuns []object `json:"pipelineRuns"`
	TaskRuns     []object `json:"taskRuns"`
	Continue     string   `json:"continue"`
}

func live(t *testing.T, path string, changes ...change) liveAnswer {
	t.Helper()
	a := ok(t, get(t, path, append([]change{as("reader")}, changes...)...))
	var l liveAnswer
	if err := json.Unmarshal(uncompressed(t, a), &l); err != nil {
		t.Fatal(err)
	}
	return l
}

// listed gives what a plain client reads, less managedFields.
func listed(t *testing.T, gvr schema.GroupVersionResource, namespace string) map[string]object {
	t.Helper()
	l, err := cluster(t).Resource(gvr).Namespace(namespace).List(t.Context(), metav1.ListOptions{})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]object{}
	for _, o := range l.Items {
		unstructured.RemoveNestedField(o.Object, "metadata", "managedFields")
		// A round trip through JSON, so that numbers compare.
		raw, err := json.Marshal(o.Object)
		if err != nil {
			t.Fatal(err)
		}
		var plain object
		if err := json.Unmarshal(raw, &plain); err != nil {
			t.Fatal(err)
		}
		out[named(plain)] = plain
	}
	return out
}

func byName(objects []object) map[string]object {
	out := map[string]object{}
	for _, o := range objects {
		out[named(o)] = o
	}
	return out
}

// fresh waits until the list cache has forgotten what it knew before.
func fresh(t *testing.T, path string, has func(liveAnswer) bool) liveAnswer {
	t.Helper()
	var l liveAnswer
	eventually(t, path+" shows the change", func() bool { l = live(t, path); return has(l) })
	return l
}

func has(name string) func(liveAnswer) bool {
	return func(l liveAnswer) bool {
		_, p := byName(l.PipelineRuns)[name]
		_, tr := byName(l.TaskRuns)[name]
		return p || tr
	}
}

// rule: R013, R239, R016
func TestLiveReadsGiveTheClustersObjectsUnchanged(t *testing.T) {
	create(t, pipelineRuns, "PipelineRun", "app-shop-cicd", "e2e-live", nil)
	create(t, taskRuns, "TaskRun", "app-shop-cicd", "e2e-live-unit", map[string]string{"tekton.dev/pipelineRun": "e2e-live"})
	got := fresh(t, "/v1/apps/shop/live", func(l liveAnswer) bool {
		return has("app-shop-cicd/e2e-live")(l) && has("app-shop-cicd/e2e-live-unit")(l)
	})
	for kind, pair := range map[string][2]map[string]object{
		"PipelineRuns": {byName(got.PipelineRuns), listed(t, pipelineRuns, "app-shop-cicd")},
		"TaskRuns":     {byName(got.TaskRuns), listed(t, taskRuns, "app-shop-cicd")},
	} {
		if !reflect.DeepEqual(pair[0], pair[1]) {
			t.Errorf("%s differ from the cluster's: %v, %v", kind, slices.Sorted(maps.Keys(pair[0])), slices.Sorted(maps.Keys(pair[1])))
		}
	}
	fleetRuns := fresh(t, "/v1/live", has("app-shop-cicd/e2e-live"))
	if want := listed(t, pipelineRuns, ""); !reflect.DeepEqual(byName(fleetRuns.PipelineRuns), want) {
		t.Errorf("the fleet's runs differ from the cluster's: %d, %d", len(fleetRuns.PipelineRuns), len(want))
	}
	for _, o := range live(t, "/v1/live?app=shop").PipelineRuns {
		if !strings.HasPrefix(named(o), "app-shop-cicd/") {
			t.Errorf("app=shop gave %s", named(o))
		}
	}
}

// rule: R240
func TestRightsInTektonAreNoRightsHereAndAreNotNeeded(t *testing.T) {
	// The reader has no right on tekton.dev at all: an API server asked with
	// its token refuses.
	_, a, err := try(t.Context(), http.MethodGet, gw.URL+"/v1/apps/gate-api/live", as("reader"))
	if err != nil || a.status != http.StatusOK {
		t.Errorf("got %d, %v", a.status, err)
	}
	if accessReview(t, username(t, "reader"), "list", "tekton.dev", "pipelineruns", "app-gate-api-cicd") {
		t.Error("the sample reader may list PipelineRuns itself, so this test shows nothing")
	}
	// Another who may do everything in Tekton, and nothing here.
	const role = "e2e-tekton"
	roles := gw.APIServer.Client.RbacV1().ClusterRoles()
	_, err = roles.Create(t.Context(), &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: role},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{"tekton.dev"}, Resources: []string{"*"}, Verbs: []string{"*"}}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := roles.Delete(cleanupContext(t), role, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	bindRole(t, role, "app-gate-api-cicd", "stranger")
	eventually(t, "the stranger has the right in Tekton", func() bool {
		return accessReview(t, username(t, "stranger"), "list", "tekton.dev", "pipelineruns", "app-gate-api-cicd")
	})
	refused(t, get(t, "/v1/apps/gate-api/live", as("stranger")), 403, "GP-AUTHZ-001")
}

// rule: R017, R259, R262
func TestTheTaskRunsOfTheNamedRunsAndOfNoOthers(t *testing.T) {
	for _, run := range []string{"e2e-a", "e2e-a-b", "e2e-c"} {
		create(t, taskRuns, "TaskRun", "app-shop-cicd", run+"-unit", map[string]string{"tekton.dev/pipelineRun": run})
	}
	got := fresh(t, "/v1/live/taskruns?pipelineRuns=e2e-a,e2e-c", has("app-shop-cicd/e2e-c-unit"))
	names := slices.Sorted(maps.Keys(byName(got.TaskRuns)))
	if want := []string{"app-shop-cicd/e2e-a-unit", "app-shop-cicd/e2e-c-unit"}; !slices.Equal(names, want) {
		t.Errorf("got %v, want %v", names, want)
	}
	if got := live(t, "/v1/live/taskruns?pipelineRuns=e2e-a&app=gate-api"); len(got.TaskRuns) != 0 {
		t.Errorf("another app's namespace gave %v", got.TaskRuns)
	}
	for _, path := range []string{"/v1/live/taskruns", "/v1/live/taskruns?pipelineRuns="} {
		a := ok(t, get(t, path, as("reader")))
		if strings.TrimSpace(string(a.body)) != `{"taskRuns":[]}` {
			t.Errorf("%s: got %s", path, a.body)
		}
		refused(t, get(t, path, as("stranger")), 403, "GP-AUTHZ-001")
	}
}

// rule: R260, R261
func TestTheNamesOfPipelineRunsAreBounded(t *testing.T) {
	many := make([]string, 201)
	for i := range many {
		many[i] = fmt.Sprintf("run-%d", i)
	}
	for name, tc := range map[string]struct {
		names  string
		status int
	}{
		"200 names":               {strings.Join(many[:200], ","), 200},
		"201 names":               {strings.Join(many, ","), 400},
		"201 with a repeat":       {strings.Join(many[:200], ",") + "," + many[0], 200},
		"63 characters":           {strings.Repeat("a", 63), 200},
		"64 characters":           {strings.Repeat("a", 64), 400},
		"upper case":              {"Run-1", 400},
		"an underscore":           {"run_1", 400},
		"a selector of its own":   {"a)!=(b", 400},
		"a hyphen at its end":     {"run-", 400},
		"a name between two dots": {"a..b", 400},
	} {
		t.Run(name, func(t *testing.T) {
			a := get(t, "/v1/live/taskruns?pipelineRuns="+tc.names, as("reader"))
			if a.status != tc.status {
				t.Errorf("got %d, want %d: %.200s", a.status, tc.status, a.body)
			}
		})
	}
	refused(t, get(t, "/v1/live/taskruns?pipelineRuns=a&pipelineRuns=b", as("reader")), 400, "GP-API-400")
}

// rule: R241
func TestViewersWithinTwoSecondsShareOneList(t *testing.T) {
	mark, err := gw.APIServer.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 40 {
		wg.Go(func() {
			if _, a, err := try(t.Context(), http.MethodGet, gw.URL+"/v1/apps/boarding-api/live", as("reader")); err != nil || a.status != 200 {
				t.Errorf("%d %v", a.status, err)
			}
		})
	}
	wg.Wait()
	events, err := gw.APIServer.Audit(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	lists := map[string]int{}
	for _, e := range events {
		if e.Verb == "list" && e.Namespace == "app-boarding-api-cicd" {
			lists[e.Resource]++
		}
	}
	// 40 calls on a slow machine may outlive one fill; they never cause one each.
	for _, resource := range []string{"pipelineruns", "taskruns"} {
		if n := lists[resource]; n < 1 || n > 5 {
			t.Errorf("%d lists of %s for 40 viewers", n, resource)
		}
	}
}
