package devenv_test

import (
	"path/filepath"
	"testing"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"hangar.io/glidepath/internal/devenv"
)

func TestATokenOfTheAPIServerIsReviewedByIt(t *testing.T) {
	ctx := t.Context()
	must(t, api.EnsureServiceAccount(ctx, "tokens", "caller"))
	must(t, api.EnsureServiceAccount(ctx, "tokens", "caller")) // twice is harmless
	for _, tc := range []struct {
		name          string
		audiences     []string // asked for
		reviewed      []string // reviewed with
		authenticated bool
	}{
		{"its own audience by default", nil, nil, true},
		{"the audience asked for", []string{"elsewhere"}, []string{"elsewhere"}, true},
		{"another audience", []string{"elsewhere"}, nil, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			token, err := api.Token(ctx, "tokens", "caller", 24*time.Hour, tc.audiences...)
			must(t, err)
			review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token, Audiences: tc.reviewed}}
			got, err := api.Client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
			must(t, err)
			if got.Status.Authenticated != tc.authenticated {
				t.Errorf("authenticated %v, want %v: %s", got.Status.Authenticated, tc.authenticated, got.Status.Error)
			}
		})
	}
}

func TestAKubeconfigHasTheRightsOfItsServiceAccountAlone(t *testing.T) {
	ctx := t.Context()
	must(t, api.EnsureServiceAccount(ctx, "rights", "none"))
	file := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, api.WriteKubeconfig(ctx, file, "", "rights", "none"))
	cfg, err := clientcmd.BuildConfigFromFlags("", file)
	must(t, err)
	client, err := kubernetes.NewForConfig(cfg)
	must(t, err)
	if _, err := client.CoreV1().Namespaces().List(ctx, metav1.ListOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("listing namespaces: %v, want forbidden", err)
	}
}

func TestADeletedNamespaceComesBackEmptyUnderAnotherUID(t *testing.T) {
	ctx := t.Context()
	must(t, api.EnsureServiceAccount(ctx, "again", "default"))
	maps := api.Client.CoreV1().ConfigMaps("again")
	_, err := maps.Create(ctx, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "left"}}, metav1.CreateOptions{})
	must(t, err)
	before, err := api.Client.CoreV1().Namespaces().Get(ctx, "again", metav1.GetOptions{})
	must(t, err)

	must(t, api.DeleteNamespace(ctx, "again"))
	if _, err := api.Client.CoreV1().Namespaces().Get(ctx, "again", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Fatalf("the namespace after its deletion: %v, want not found", err)
	}
	must(t, api.EnsureServiceAccount(ctx, "again", "default"))
	after, err := api.Client.CoreV1().Namespaces().Get(ctx, "again", metav1.GetOptions{})
	must(t, err)
	if after.UID == before.UID {
		t.Error("the namespace has the UID of the deleted one")
	}
	if _, err := maps.Get(ctx, "left", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("an object of the deleted namespace: %v, want not found", err)
	}
	must(t, api.DeleteNamespace(ctx, "never-was"))
}

func TestTheAuditLogCountsReviewsAndNamesWhatWasAsked(t *testing.T) {
	ctx := t.Context()
	mark, err := api.AuditMark(ctx)
	must(t, err)
	const reviews = 3
	for range reviews {
		_, err := api.Client.AuthenticationV1().TokenReviews().Create(ctx,
			&authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: "secret-token"}}, metav1.CreateOptions{})
		must(t, err)
	}
	_, err = api.Client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: "somebody", ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: "runs"}},
	}, metav1.CreateOptions{})
	must(t, err)

	events, err := api.Audit(ctx, mark)
	must(t, err)
	counts := map[string]int{}
	for _, e := range events {
		counts[e.Resource]++
		if e.Resource == "tokenreviews" && (e.Object != nil || e.Verb != "create" || e.Code != 201) {
			t.Errorf("a token review was recorded as %+v", e)
		}
		if e.Resource == "subjectaccessreviews" && !containsUser(e, "somebody") {
			t.Errorf("the access review's body is %s", e.Object)
		}
	}
	if counts["tokenreviews"] != reviews || counts["subjectaccessreviews"] != 1 {
		t.Errorf("recorded %v, want %d token reviews and one access review", counts, reviews)
	}
	rest, err := api.AuditMark(ctx)
	must(t, err)
	if events, err = api.Audit(ctx, rest); err != nil || len(events) != 0 {
		t.Errorf("after the end there are %v, %v", events, err)
	}
}

func TestAnAPIServerComesBackWithItsDataOnTheSamePort(t *testing.T) {
	ctx := t.Context()
	must(t, api.EnsureServiceAccount(ctx, "kept", "default"))
	token, err := api.Token(ctx, "kept", "default", time.Hour)
	must(t, err)
	api.Process.Kill()
	api.Etcd.Process.Kill()
	if _, err := api.Client.CoreV1().Namespaces().Get(ctx, "kept", metav1.GetOptions{}); err == nil {
		t.Fatal("a killed API server answers")
	}
	must(t, api.Etcd.Process.Restart(ctx))
	must(t, api.Process.Restart(ctx))
	review := &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}
	got, err := api.Client.AuthenticationV1().TokenReviews().Create(ctx, review, metav1.CreateOptions{})
	must(t, err)
	if !got.Status.Authenticated {
		t.Errorf("a token from before the restart is refused: %s", got.Status.Error)
	}
}

func containsUser(e devenv.AuditEvent, user string) bool {
	var body authorizationv1.SubjectAccessReview
	return unmarshal(e.Object, &body) == nil && body.Spec.User == user
}
