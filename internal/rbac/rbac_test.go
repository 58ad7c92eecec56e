package rbac

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func file(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

const binding = `
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: b, namespace: app-shop-cicd, uid: "1", resourceVersion: "7", managedFields: [{manager: kubectl}]}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: r}
subjects: [{kind: ServiceAccount, name: a, namespace: n}]
`

func TestManifestsAreReadInEveryForm(t *testing.T) {
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r, labels: {a: b}}\nrules: [{apiGroups: [g], resources: [runs], verbs: [list]}]\n"
	dir := t.TempDir()
	for name, content := range map[string]string{
		"one.yaml": "# a comment alone\n---" + binding + "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: infra-x-cicd}\n",
		"two.yml":  "apiVersion: v1\nkind: List\nitems:\n  - {apiVersion: rbac.authorization.k8s.io/v1, kind: Role, metadata: {name: l, namespace: team}, rules: []}\n",
		"sub.json": `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRoleBindingList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"t"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"r"}}]}`,
		"note.txt": "kind: Nothing",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s, err := Read([]string{dir, file(t, "role", role)})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.Roles) != 1 || len(s.RoleBindings) != 1 || len(s.ClusterRoles) != 1 || len(s.ClusterRoleBindings) != 1 {
		t.Errorf("got %+v", s)
	}
	if m := s.RoleBindings[0].ObjectMeta; m.UID != "" || m.ResourceVersion != "" || m.ManagedFields != nil || m.Namespace != "app-shop-cicd" {
		t.Errorf("metadata that belongs to another cluster: %+v", m)
	}
	if s.ClusterRoles[0].Labels["a"] != "b" || len(s.RoleBindings[0].Subjects) != 1 {
		t.Errorf("got %+v", s)
	}
	if want := []string{"app-shop-cicd", "infra-x-cicd", "team"}; !slices.Equal(s.AllNamespaces(), want) {
		t.Errorf("namespaces %v", s.AllNamespaces())
	}
}

func TestManifestsOfAnythingElseAreRefused(t *testing.T) {
	for name, tc := range map[string]struct{ content, want string }{
		"another kind":              {"apiVersion: v1\nkind: Secret\nmetadata: {name: s}\n", "only Namespaces"},
		"another kind in a list":    {"apiVersion: v1\nkind: List\nitems: [{apiVersion: apps/v1, kind: Deployment, metadata: {name: d}}]\n", "only Namespaces"},
		"an older version":          {"apiVersion: rbac.authorization.k8s.io/v1beta1\nkind: Role\nmetadata: {name: r, namespace: n}\n", "only Namespaces"},
		"a kind that is none":       {"apiVersion: rbac.authorization.k8s.io/v1\nkind: Rule\nmetadata: {name: r}\n", "no such kind"},
		"no name":                   {"apiVersion: v1\nkind: Namespace\nmetadata: {}\n", "without a name"},
		"no namespace":              {"apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: r}\n", "a namespace is missing"},
		"a namespace for a cluster": {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r, namespace: n}\n", "one too many"},
		"a field that is none":      {"apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: r}\nrule: []\n", "rule"},
		"one that stands twice":     {binding + "---" + binding, "stands here and in"},
		"what is no object":         {"- a\n", "cannot unmarshal"},
		"what says nothing":         {"a: b\n", "no object"},
		"nothing":                   {"# nothing\n", "there is no object"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := Read([]string{file(t, "f.yaml", tc.content)}); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
	if _, err := Read([]string{"/nonexistent"}); err == nil {
		t.Error("a path that is not there is taken")
	}
}

func TestAggregatedRolesAreFilledOverSeveralSteps(t *testing.T) {
	role := func(name, label, selects, verb string) rbacv1.ClusterRole {
		r := rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{label: "true"}}}
		if verb != "" {
			r.Rules = []rbacv1.PolicyRule{{Verbs: []string{verb}}}
		}
		if selects != "" {
			r.AggregationRule = &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: map[string]string{selects: "true"}}}}
		}
		return r
	}
	roles := []rbacv1.ClusterRole{
		role("all", "none", "to-all", "stale"), role("some", "to-all", "to-some", ""), role("a", "to-some", "", "get"), role("b", "to-all", "", "list"), role("c", "none", "", "delete"),
	}
	changed, err := aggregate(roles)
	if err != nil || len(changed) != 2 || !changed["all"] || !changed["some"] {
		t.Fatalf("%v, %v", changed, err)
	}
	var verbs []string
	for _, r := range roles[0].Rules {
		verbs = append(verbs, r.Verbs...)
	}
	slices.Sort(verbs)
	if !slices.Equal(verbs, []string{"get", "list"}) {
		t.Errorf("all has %v", verbs)
	}
	if again, err := aggregate(roles); err != nil || len(again) != 0 {
		t.Errorf("again: %v, %v", again, err)
	}
	roles[0].AggregationRule.ClusterRoleSelectors[0].MatchExpressions = []metav1.LabelSelectorRequirement{{Key: "x", Operator: "Is"}}
	if _, err := aggregate(roles); err == nil {
		t.Error("a selector that is none is taken")
	}
}
