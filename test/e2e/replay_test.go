package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/replay"
	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/rbac"
)

// Lines that the real edge wrote are decided again: against the same roles, the
// cluster itself and a scratch one, there is no difference; against other roles
// there are exactly those that the roles make.
func TestPastCallsAreDecidedAgain(t *testing.T) {
	lines := callsOfEverybody(t)
	dump := dumped(t)
	scratch := devtest.APIServer(t)
	if err := rbac.CheckScratch(t.Context(), scratch.Client); err != nil {
		t.Fatal(err)
	}
	if err := rbac.CheckScratch(t.Context(), gw.APIServer.Client); err == nil {
		t.Error("the gateway's own cluster is taken for a scratch one")
	}
	set, err := rbac.Read([]string{dump})
	if err != nil {
		t.Fatal(err)
	}
	if err := set.Apply(t.Context(), scratch.Client); err != nil {
		t.Fatal(err)
	}
	if r := replayed(t, lines, gw.APIServer, nil); len(r.Differences) != 0 || len(r.Unknown) != 0 || r.Judged == 0 {
		t.Errorf("against the same cluster: %s", r.Text())
	}
	if r := replayed(t, lines, scratch, set); len(r.Differences) != 0 || len(r.Unknown) != 0 || r.Judged == 0 {
		t.Errorf("against the same roles: %s", r.Text())
	}

	// The app's reader loses its app, the stranger gets a role in another.
	if err := scratch.Client.RbacV1().RoleBindings("app-gate-api-cicd").Delete(t.Context(), "glidepath-api-readers", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	more := &rbac.Set{RoleBindings: []rbacv1.RoleBinding{{
		ObjectMeta: metav1.ObjectMeta{Name: "strangers", Namespace: "infra-postgres-cicd"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "glidepath-api-reader"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: "glidepath-demo", Name: "stranger"}},
	}}}
	if err := more.Apply(t.Context(), scratch.Client); err != nil {
		t.Fatal(err)
	}
	set.RoleBindings = append(set.RoleBindings, more.RoleBindings...)
	var want []string
	for _, op := range api.Operations() {
		if op.Scope == api.ScopeApp && op.Tier == api.TierRead && !staysOpen(op) {
			want = append(want, username(t, "app-reader")+" "+op.ID+" gate-api lost", username(t, "stranger")+" "+op.ID+" postgres gained")
		}
	}
	got := make([]string, 0, len(want))
	for _, d := range replayed(t, lines, scratch, set).Differences {
		end := " gained"
		if d.Was.Allowed {
			end = " lost"
		}
		got = append(got, d.Caller+" "+d.Op+" "+d.App+end)
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("got\n%q\nwant\n%q", got, want)
	}
}

// callsOfEverybody makes calls, and gives a file of the lines that they left.
func callsOfEverybody(t *testing.T) string {
	t.Helper()
	get(t, "/v1/whoami", as("stranger"))
	before := len(auditLines(t))
	for _, caller := range []string{"stranger", "app-reader", "reader", "operator", "releaser", "delegate"} {
		for _, op := range api.Operations() {
			for _, path := range pathsOf(op) {
				_, _, err := try(t.Context(), op.Method, gw.URL+path, as(caller))
				if err != nil {
					t.Fatal(err)
				}
				if caller == "delegate" {
					if _, _, err := try(t.Context(), op.Method, gw.URL+path, as(caller), onBehalfOf("user:default/ana")); err != nil {
						t.Fatal(err)
					}
				}
			}
		}
	}
	// What no role changes is in the log too.
	get(t, "/v1/apps/shop/live")
	get(t, "/v1/apps/shop/live", bearer("nonsense"))
	get(t, "/v1/apps/shop/nothing", as("reader"))
	call(t, http.MethodDelete, gw.URL+"/v1/whoami", as("reader"))
	all := linesAfter(t, func(line) bool { return true })[before:]
	file := filepath.Join(t.TempDir(), "audit.log")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range all {
		if err := json.NewEncoder(f).Encode(l); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	return file
}

// pathsOf gives calls of an operation about apps that are there and one that is
// not.
func pathsOf(op api.Operation) []string {
	path := calls[op.ID]
	if staysOpen(op) {
		return nil
	}
	if op.Scope != api.ScopeApp {
		return []string{path}
	}
	var paths []string
	for _, app := range []string{"gate-api", "postgres", "made-upp"} {
		paths = append(paths, "/v1/apps/"+app+path[len("/v1/apps/gate-api"):])
	}
	return paths
}

// dumped writes the roles and bindings of the gateway's cluster to a file, as
// kubectl get -o json does.
func dumped(t *testing.T) string {
	t.Helper()
	client := gw.APIServer.Client.RbacV1()
	folder := t.TempDir()
	write := func(kind string, list any, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		raw, err := json.Marshal(list)
		if err != nil {
			t.Fatal(err)
		}
		var fields map[string]any
		if err := json.Unmarshal(raw, &fields); err != nil {
			t.Fatal(err)
		}
		fields["apiVersion"], fields["kind"] = rbacv1.SchemeGroupVersion.String(), kind+"List"
		if raw, err = json.Marshal(fields); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, kind+".json"), raw, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all := metav1.ListOptions{}
	roles, err := client.Roles("").List(t.Context(), all)
	write("Role", roles, err)
	bindings, err := client.RoleBindings("").List(t.Context(), all)
	write("RoleBinding", bindings, err)
	clusterRoles, err := client.ClusterRoles().List(t.Context(), all)
	write("ClusterRole", clusterRoles, err)
	clusterBindings, err := client.ClusterRoleBindings().List(t.Context(), all)
	write("ClusterRoleBinding", clusterBindings, err)
	return folder
}

// replayed decides the lines of a file again. Without a set the cluster is one
// that has the apps' namespaces.
func replayed(t *testing.T, file string, cluster *devenv.APIServer, set *rbac.Set) *replay.Report {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	tally := replay.NewTally(100_000)
	if err := tally.Read(t.Context(), "audit.log", f); err != nil {
		t.Fatal(err)
	}
	access, err := replay.NewAccess(cluster.Admin)
	if err != nil {
		t.Fatal(err)
	}
	defer access.Close()
	c := replay.Config{Access: access, Concurrency: 8}
	if set != nil {
		c.Namespaces = tally.Namespaces(set.AllNamespaces())
	} else {
		started, err := namespaces.Start(t.Context(), cluster.Admin)
		if err != nil {
			t.Fatal(err)
		}
		defer started.Close()
		c.Namespaces = started
	}
	r, err := replay.Judge(t.Context(), c, tally)
	if err != nil {
		t.Fatal(err)
	}
	if r.Calls != r.Lines || r.Malformed != 0 || len(r.Unaffected) == 0 {
		t.Errorf("lines of the edge were not read: %s", r.Text())
	}
	return r
}
