package e2e_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/fleet"
)

// archivedRun is what the tests read of a Run.
type archivedRun struct {
	Result, Name, Namespace, App, Status string
	CreatedAt                            time.Time
	PipelineRun                          object
	TaskRuns                             []object
}

func runsOf(t *testing.T, path string, changes ...change) []archivedRun {
	t.Helper()
	var list struct{ Runs []archivedRun }
	ok(t, get(t, path, append([]change{as("reader")}, changes...)...)).decode(t, &list)
	return list.Runs
}

// sampleRun finds a run of the sample fleet by its name.
func sampleRun(t *testing.T, app, name string) archivedRun {
	t.Helper()
	all := runsOf(t, "/v1/apps/"+app+"/runs")
	i := slices.IndexFunc(all, func(r archivedRun) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("%s has no run %s: %+v", app, name, all)
	}
	return all[i]
}

// rule: R007, R238
func TestTheArchivedRunsOfAnAppSayHowTheyEnded(t *testing.T) {
	for _, tc := range []struct{ app, name, status string }{
		{"gate-api", "image-h2v8n", "succeeded"},
		{"shop", "build-f7c5q", "failed"},
		{"boarding-api", "test-z8n5d", "cancelled"},
		{"sky-marshall", "build-t8m4z", "timedOut"},
		{"postgres", "build-j2w7k", "cancelled"},
	} {
		if got := sampleRun(t, tc.app, tc.name).Status; got != tc.status {
			t.Errorf("%s of %s %s, want %s", tc.name, tc.app, got, tc.status)
		}
	}
	all := runsOf(t, "/v1/apps/gate-api/runs")
	if !slices.IsSortedFunc(all, func(a, b archivedRun) int { return b.CreatedAt.Compare(a.CreatedAt) }) {
		t.Errorf("not newest first: %+v", all)
	}
	for _, r := range all {
		if r.Name == "test-p6b2w" {
			t.Error("a run that goes on is in the list")
		}
	}
	if got := runsOf(t, "/v1/apps/gate-api/runs?limit=1"); len(got) != 1 || !got[0].CreatedAt.Equal(all[0].CreatedAt) {
		t.Errorf("the newest one is %+v", got)
	}
}

// rule: R243, R010
func TestARunThatIsLiveAndArchivedHasOneUID(t *testing.T) {
	one := sampleRun(t, "postgres", "deploy-m6v9b")
	objects := byName(live(t, "/v1/apps/postgres/live").PipelineRuns)
	here := objects["infra-postgres-cicd/deploy-m6v9b"]
	meta, _ := here["metadata"].(object)
	if meta["uid"] != one.Result {
		t.Errorf("live it is %v, archived %s", meta["uid"], one.Result)
	}
	var full archivedRun
	a := ok(t, get(t, "/v1/apps/postgres/runs/"+one.Result, as("reader")))
	a.decode(t, &full)
	if got, want := canonicalJSON(t, full.PipelineRun), canonicalJSON(t, here); got != want {
		t.Errorf("archived it is\n%s\nand live\n%s", got, want)
	}
	if len(full.TaskRuns) == 0 {
		t.Error("it has no TaskRuns")
	}
	refused(t, get(t, "/v1/apps/postgres/runs/deploy-m6v9b", as("reader")), 400, "GP-API-400")
	refused(t, get(t, "/v1/apps/shop/runs/"+one.Result, as("reader")), 404, "GP-API-404")
}

func canonicalJSON(t *testing.T, o object) string {
	t.Helper()
	raw, err := json.Marshal(o)
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

// rule: R011, R400
func TestTheArchivedLogOfATaskRun(t *testing.T) {
	logOf := func(app, name, part string) answer {
		t.Helper()
		var full archivedRun
		ok(t, get(t, "/v1/apps/"+app+"/runs/"+sampleRun(t, app, name).Result, as("reader"))).decode(t, &full)
		for _, task := range full.TaskRuns {
			if name := named(task); strings.Contains(name, part) {
				_, taskRun, _ := strings.Cut(name, "/")
				return get(t, "/v1/apps/"+app+"/runs/"+full.Result+"/logs/"+taskRun, as("reader"))
			}
		}
		t.Fatalf("%s of %s has no TaskRun %s", name, app, part)
		return answer{}
	}
	a := ok(t, logOf("shop", "build-f7c5q", "compile"))
	if text := string(a.body); !strings.Contains(text, "+ exec ") || !strings.Contains(text, "exit status ") || !strings.HasPrefix(a.header.Get("Content-Type"), "text/plain") {
		t.Errorf("%s: %s", a.header.Get("Content-Type"), text)
	}
	refused(t, logOf("sky-marshall", "build-t8m4z", "compile"), 404, "GP-LOG-404") // its Pod was taken away
	run := sampleRun(t, "shop", "build-f7c5q").Result
	refused(t, get(t, "/v1/apps/shop/runs/"+run+"/logs/no-such-taskrun", as("reader")), 404, "GP-API-404")
}

// rule: R015, R263, R264
func TestTheArchivedRunsOfTheFleet(t *testing.T) {
	apps := map[string]string{}
	all := runsOf(t, "/v1/runs?limit=1000")
	for _, r := range all {
		apps[r.Namespace] = r.App
	}
	for namespace, app := range map[string]string{"app-shop-cicd": "shop", "infra-postgres-cicd": "postgres", fleet.UnrelatedNamespace: ""} {
		if got, there := apps[namespace]; !there || got != app {
			t.Errorf("%s is %q's, there %t", namespace, got, there)
		}
	}
	if !slices.IsSortedFunc(all, func(a, b archivedRun) int { return b.CreatedAt.Compare(a.CreatedAt) }) {
		t.Error("not newest first")
	}
	for _, r := range runsOf(t, "/v1/runs?app=gate-api") {
		if r.App != "gate-api" || r.Namespace != "app-gate-api-cicd" {
			t.Errorf("got %+v", r)
		}
	}
	refused(t, get(t, "/v1/runs", as("app-reader")), 403, "GP-AUTHZ-001")
}

// rule: R007, R010, R011, R012, R023, R024
func TestEachArchivedReadNeedsItsOwnRight(t *testing.T) {
	run := sampleRun(t, "shop", "build-f7c5q").Result
	needs := map[string]string{
		"/runs": "list runs", "/runs/" + run: "get runs", "/runs/" + run + "/logs/no-such-taskrun": "get runs/logs", "/runs/" + run + "/explain": "get runs/logs",
		"/tests": "list tests", "/tests/669fd9a8c5d2f0a1b2c3d4e5/report": "get tests",
	}
	for _, right := range slices.Compact(slices.Sorted(maps.Values(needs))) {
		who := bearer(withRight(t, "app-shop-cicd", right))
		for path, needed := range needs {
			a := get(t, "/v1/apps/shop"+path, who)
			if right != needed {
				refused(t, a, 403, "GP-AUTHZ-001")
			} else if a.status == http.StatusForbidden {
				t.Errorf("with %s alone %s is %d %s", right, path, a.status, a.body)
			}
		}
	}
}

// withRight gives a token of an account that may do one thing in a namespace.
func withRight(t *testing.T, namespace, right string) string {
	t.Helper()
	verb, resource, _ := strings.Cut(right, " ")
	name := "e2e-" + strings.NewReplacer(" ", "-", "/", "-").Replace(right)
	token := makeAccount(t, name)
	meta, c, ctx := metav1.ObjectMeta{Name: name}, gw.APIServer.Client, t.Context()
	_, err := c.RbacV1().Roles(namespace).Create(ctx, &rbacv1.Role{ObjectMeta: meta, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"glidepath.hangar.io"}, Resources: []string{resource}, Verbs: []string{verb}},
	}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.RbacV1().RoleBindings(namespace).Create(ctx, &rbacv1.RoleBinding{
		ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name},
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: fleet.DemoNamespace, Name: name}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx := cleanupContext(t)
		for _, err := range []error{
			c.RbacV1().RoleBindings(namespace).Delete(ctx, name, metav1.DeleteOptions{}), c.RbacV1().Roles(namespace).Delete(ctx, name, metav1.DeleteOptions{}),
		} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	return token
}
