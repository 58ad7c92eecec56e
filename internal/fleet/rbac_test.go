package fleet_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/fleet"
)

const group = "glidepath.hangar.io"

// allowed asks the API server, as authz does, whether the identity may. What is "verb resource[/subresource]".
func allowed(t *testing.T, who fleet.Caller, apiGroup, what, namespace string) bool {
	t.Helper()
	verb, resource, _ := strings.Cut(what, " ")
	resource, subresource, _ := strings.Cut(resource, "/")
	review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
		User:   who.Username(),
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + who.Namespace, "system:authenticated"},
		ResourceAttributes: &authorizationv1.ResourceAttributes{
			Group: apiGroup, Verb: verb, Resource: resource, Subresource: subresource, Namespace: namespace,
		},
	}}
	answer, err := api.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), review, metav1.CreateOptions{})
	if err != nil {
		t.Fatalf("may %s %s in %q: %v", who.Name, what, namespace, err)
	}
	return answer.Status.Allowed
}

// Every right that a call of the gateway may need, and some that none may give.
func reads() []string {
	return []string{
		"list runs", "get runs", "get runs/logs", "list releases", "get releases", "get evidence", "list tests", "get tests",
		"list environments", "get environments", "list events", "validate cicd",
	}
}

func rights() []string {
	return append(reads(), "rerun runs", "cancel runs", "promote environments", "rollback environments",
		"get events", "list evidence", "list runs/logs", "watch events", "create runs", "delete runs", "list cicd", "get cicd")
}

// rule: R074
func TestCallersMayExactlyWhatTheirRolesSay(t *testing.T) {
	t.Parallel()
	operate := []string{"rerun runs", "cancel runs"}
	release := []string{"promote environments", "rollback environments"}
	// Namespaces: cluster-wide, the app-reader's, another app's, an InfraService's, and one that is no app's.
	everywhere := []string{"", "app-gate-api-cicd", "app-shop-cicd", "infra-postgres-cicd", "reporting"}
	for name, want := range map[string]struct{ rights, in []string }{
		fleet.CallerReader:    {reads(), everywhere},
		fleet.CallerAppReader: {reads(), []string{"app-gate-api-cicd"}},
		fleet.CallerOperator:  {operate, everywhere},
		fleet.CallerReleaser:  {release, everywhere},
		fleet.CallerDelegate:  {slices.Concat(reads(), operate, release), everywhere},
		fleet.CallerStranger:  {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			caller, ok := fleet.LookupCaller(name)
			if !ok {
				t.Fatalf("no caller %s", name)
			}
			for _, namespace := range everywhere {
				for _, right := range rights() {
					may := slices.Contains(want.in, namespace) && slices.Contains(want.rights, right)
					if got := allowed(t, caller, group, right, namespace); got != may {
						t.Errorf("may %s in %q: got %t, want %t", right, namespace, got, may)
					}
				}
			}
		})
	}
}

func TestCallersMayDoNothingToTheClusterItself(t *testing.T) {
	t.Parallel()
	for _, caller := range fleet.Callers() {
		for _, right := range []string{"get pods", "get pods/log", "list secrets", "create tokenreviews", "list configmaps"} {
			if allowed(t, caller, "", right, "app-gate-api-cicd") {
				t.Errorf("%s may %s", caller.Name, right)
			}
		}
		for _, right := range []string{"list pipelineruns", "create pipelineruns", "patch pipelineruns", "list taskruns"} {
			if allowed(t, caller, "tekton.dev", right, "app-gate-api-cicd") {
				t.Errorf("%s may %s", caller.Name, right)
			}
		}
	}
}

func TestTheGatewaysIdentitiesMayWhatTheirWorkNeeds(t *testing.T) {
	t.Parallel()
	authz, livehub := fleet.ServiceIdentity(fleet.AuthzServiceAccount), fleet.ServiceIdentity(fleet.LivehubServiceAccount)
	runs := fleet.ServiceIdentity(fleet.RunsServiceAccount)
	for _, tt := range []struct {
		who         fleet.Caller
		group, what string
		want        bool
	}{
		{authz, "authentication.k8s.io", "create tokenreviews", true},
		{authz, "authorization.k8s.io", "create subjectaccessreviews", true},
		{authz, "", "get namespaces", true},
		{authz, "", "list namespaces", true},
		{authz, "", "watch namespaces", true},
		{authz, "", "create namespaces", false},
		{authz, "", "get secrets", false},
		{authz, "", "create serviceaccounts/token", false},
		{authz, "", "impersonate users", false},
		{authz, "tekton.dev", "list pipelineruns", false},
		{authz, group, "list runs", false},
		{livehub, "tekton.dev", "list pipelineruns", true},
		{livehub, "tekton.dev", "watch pipelineruns", true},
		{livehub, "tekton.dev", "get pipelineruns", false},
		{livehub, "tekton.dev", "create pipelineruns", false},
		{livehub, "tekton.dev", "patch pipelineruns", false},
		{livehub, "tekton.dev", "get taskruns", true},
		{livehub, "tekton.dev", "list taskruns", true},
		{livehub, "tekton.dev", "watch taskruns", true},
		{livehub, "tekton.dev", "patch taskruns", false},
		{livehub, "", "get pods", true},
		{livehub, "", "get pods/log", true},
		{livehub, "", "list pods", false},
		{livehub, "", "create pods/exec", false},
		{livehub, "", "get secrets", false},
		{livehub, "", "list configmaps", false},
		{livehub, "authentication.k8s.io", "create tokenreviews", false},
		{livehub, "authorization.k8s.io", "create subjectaccessreviews", false},
		{livehub, group, "list runs", false},
		{runs, "", "list namespaces", true},
		{runs, "", "get namespaces", false},
		{runs, "", "watch namespaces", false},
		{runs, "", "create namespaces", false},
		{runs, "", "get secrets", false},
		{runs, "", "get pods/log", false},
		{runs, "tekton.dev", "list pipelineruns", false},
		{runs, "tekton.dev", "create pipelineruns", false},
		{runs, "results.tekton.dev", "list records", false},
		{runs, group, "list runs", false},
	} {
		if got := allowed(t, tt.who, tt.group, tt.what, ""); got != tt.want {
			t.Errorf("may %s %s: got %t, want %t", tt.who.Name, tt.what, got, tt.want)
		}
	}
}

func TestATokenIsItsCallersForItsAudience(t *testing.T) {
	t.Parallel()
	caller, _ := fleet.LookupCaller(fleet.CallerAppReader)
	for name, audiences := range map[string][]string{"the API server's own": nil, "another": {"elsewhere"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			token, err := fleet.Token(t.Context(), api.Admin, caller, 10*time.Minute, audiences...)
			if err != nil {
				t.Fatal(err)
			}
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: audiences}}
			answer, err := api.Client.AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{})
			if err != nil {
				t.Fatal(err)
			}
			status := answer.Status
			if !status.Authenticated || status.User.Username != caller.Username() || len(status.Audiences) == 0 {
				t.Errorf("the token is %s's, authenticated %t for %q", status.User.Username, status.Authenticated, status.Audiences)
			}
			if audiences == nil {
				return
			}
			review.Spec.Audiences = nil
			if answer, err = api.Client.AuthenticationV1().TokenReviews().Create(t.Context(), review, metav1.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
			if answer.Status.Authenticated {
				t.Error("a token for another audience is good for the API server")
			}
		})
	}
}

func TestATokenOfNobodyIsAnError(t *testing.T) {
	t.Parallel()
	_, err := fleet.Token(t.Context(), api.Admin, fleet.Caller{Namespace: fleet.DemoNamespace, ServiceAccount: "nobody"}, time.Hour)
	if err == nil || !strings.Contains(err.Error(), "system:serviceaccount:glidepath-demo:nobody") {
		t.Errorf("got %v, want an error that names the ServiceAccount", err)
	}
}
