package fleet

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/internal/simulator/life"
)

// rulesOf writes a role's rules as "group resource verb", sorted.
func rulesOf(t *testing.T, role string) []string {
	t.Helper()
	objects, err := read(folderRBAC)
	if err != nil {
		t.Fatal(err)
	}
	for _, object := range objects {
		if object.GetKind() != "ClusterRole" || object.GetName() != role {
			continue
		}
		text, err := json.Marshal(object.Object["rules"])
		if err != nil {
			t.Fatal(err)
		}
		var rules []struct{ APIGroups, Resources, Verbs []string }
		if err := json.Unmarshal(text, &rules); err != nil {
			t.Fatal(err)
		}
		var flat []string
		for _, rule := range rules {
			for _, group := range rule.APIGroups {
				for _, resource := range rule.Resources {
					for _, verb := range rule.Verbs {
						flat = append(flat, group+" "+resource+" "+verb)
					}
				}
			}
		}
		slices.Sort(flat)
		return flat
	}
	t.Fatalf("no ClusterRole %s", role)
	return nil
}

// A right that is not in this list is a right too many.
func TestRolesHoldNothingElse(t *testing.T) {
	t.Parallel()
	const g = "glidepath.hangar.io "
	for role, want := range map[string][]string{
		ReaderRole: {
			g + "cicd validate", g + "environments get", g + "environments list", g + "events list", g + "evidence get",
			g + "releases get", g + "releases list", g + "runs get", g + "runs list", g + "runs/logs get",
			g + "tests get", g + "tests list",
		},
		OperatorRole: {g + "runs cancel", g + "runs rerun"},
		ReleaserRole: {g + "environments promote", g + "environments rollback"},
		AuthzServiceAccount: {
			" namespaces get", " namespaces list", " namespaces watch",
			"authentication.k8s.io tokenreviews create", "authorization.k8s.io subjectaccessreviews create",
		},
		LivehubServiceAccount: {
			" pods get", " pods/log get", "tekton.dev pipelineruns list", "tekton.dev pipelineruns watch",
			"tekton.dev taskruns get", "tekton.dev taskruns list", "tekton.dev taskruns watch",
		},
	} {
		if diff := cmp.Diff(want, rulesOf(t, role)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", role, diff)
		}
	}
}

func TestTheCatalogIsWhereReferencesLook(t *testing.T) {
	t.Parallel()
	if CatalogNamespace != life.CatalogNamespace {
		t.Errorf("runs refer to %s, the fleet has %s", life.CatalogNamespace, CatalogNamespace)
	}
}

func TestEveryCallerHasATokenVariableOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, caller := range Callers() {
		if caller.EnvVar == "" || seen[caller.EnvVar] {
			t.Errorf("%s has the variable %q", caller.Name, caller.EnvVar)
		}
		seen[caller.EnvVar] = true
	}
	if _, ok := LookupCaller("nobody"); ok {
		t.Error("nobody is a caller")
	}
}
