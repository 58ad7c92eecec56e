package e2e_test

import (
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/fleet"
)

// rule: R389
func TestTokensThatTheClusterDoesNotAccept(t *testing.T) {
	reader, _ := fleet.LookupCaller("reader")
	otherAudience, err := fleet.Token(t.Context(), gw.APIServer.Admin, reader, time.Hour, "clearance")
	if err != nil {
		t.Fatal(err)
	}
	for name, token := range map[string]string{
		"for another audience": otherAudience,
		"expired":              expired(t),
		"forged":               forged(t),
		"without a signature":  tokens["reader"][:strings.LastIndex(tokens["reader"], ".")+1],
		"of no known issuer":   unknownIssuer(t),
		"that is no JWT":       "abc.def",
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct{ method, op string }{{"GET", "whoami"}, {"GET", "listLive"}, {"POST", "cancelPipelineRun"}} {
				refused(t, call(t, c.method, gw.URL+calls[c.op], bearer(token)), 401, "GP-AUTH-002")
			}
		})
	}
}

// expired gives a token of the cluster's own key and form whose time is over.
func expired(t *testing.T) string {
	t.Helper()
	return timed(t, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour))
}

// timed gives a token of the cluster's own key and form that is good between
// two times.
func timed(t *testing.T, from, until time.Time) string {
	t.Helper()
	var claims jwt.MapClaims
	parsed, _, err := jwt.NewParser().ParseUnverified(tokens["reader"], &claims)
	if err != nil {
		t.Fatal(err)
	}
	claims["iat"], claims["nbf"], claims["exp"] = from.Unix(), from.Unix(), until.Unix()
	token := jwt.NewWithClaims(parsed.Method, claims)
	token.Header["kid"] = parsed.Header["kid"]
	pem, err := os.ReadFile(gw.APIServer.ServiceAccountKeyFile())
	if err != nil {
		t.Fatal(err)
	}
	key, err := jwt.ParseECPrivateKeyFromPEM(pem)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := token.SignedString(key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

func unknownIssuer(t *testing.T) string {
	t.Helper()
	signed, err := jwt.NewWithClaims(jwt.SigningMethodHS256, jwt.MapClaims{
		"iss": "https://elsewhere.example", "sub": "system:serviceaccount:glidepath-demo:reader", "exp": time.Now().Add(time.Hour).Unix(),
	}).SignedString([]byte("a key that nobody else knows"))
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// rule: R389
func TestARevokedTokenIsRefused(t *testing.T) {
	accounts := gw.APIServer.Client.CoreV1().ServiceAccounts(fleet.DemoNamespace)
	const name = "e2e-revoked"
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	token, err := fleet.Token(t.Context(), gw.APIServer.Admin, fleet.Caller{Namespace: fleet.DemoNamespace, ServiceAccount: name}, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	ok(t, get(t, "/v1/whoami", bearer(token)))
	refused(t, call(t, http.MethodPost, gw.URL+calls["cancelPipelineRun"], bearer(token)), 403, "GP-AUTHZ-001")
	if err := accounts.Delete(t.Context(), name, metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	// The API server itself remembers a good token for ten seconds.
	eventually(t, "a write is refused", func() bool {
		return call(t, http.MethodPost, gw.URL+calls["cancelPipelineRun"], bearer(token)).status == http.StatusUnauthorized
	})
	eventually(t, "a read is refused", func() bool { return get(t, "/v1/whoami", bearer(token)).status == http.StatusUnauthorized })
}

// bindRole binds a ClusterRole to a sample caller in one namespace and gives a
// function that takes it away.
func bindRole(t *testing.T, role, namespace, caller string) (unbind func()) {
	t.Helper()
	c, there := fleet.LookupCaller(caller)
	if !there {
		t.Fatalf("no sample caller %q", caller)
	}
	return bindAccount(t, role, namespace, c)
}

// bindAccount is bindRole for any ServiceAccount.
func bindAccount(t *testing.T, role, namespace string, c fleet.Caller) (unbind func()) {
	t.Helper()
	bindings := gw.APIServer.Client.RbacV1().RoleBindings(namespace)
	b, err := bindings.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: c.Namespace, Name: c.ServiceAccount}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	unbind = func() {
		err := bindings.Delete(cleanupContext(t), b.Name, metav1.DeleteOptions{})
		if err != nil && !strings.Contains(err.Error(), "not found") {
			t.Error(err)
		}
	}
	t.Cleanup(unbind)
	return unbind
}

func TestARightThatIsTakenAwayEndsWritesAtOnceAndReadsSoon(t *testing.T) {
	const cancel = "/v1/apps/shop/pipelineruns/x/cancel"
	unbind := bindRole(t, fleet.OperatorRole, "app-shop-cicd", "stranger")
	unread := bindRole(t, fleet.ReaderRole, "app-shop-cicd", "stranger")
	write := func() int { return call(t, http.MethodPost, gw.URL+cancel, as("stranger")).status }
	read := func() int { return get(t, "/v1/apps/shop/live", as("stranger")).status }
	eventually(t, "the rights are in force", func() bool { return write() == 200 && read() == 200 })
	unbind()
	unread()
	eventually(t, "the API server itself has seen it", func() bool {
		return !accessReview(t, username(t, "stranger"), "cancel", "glidepath.hangar.io", "runs", "app-shop-cicd")
	})
	if got := write(); got != http.StatusForbidden {
		t.Errorf("a write after the right was gone: %d", got)
	}
	eventually(t, "reads are refused", func() bool { return read() == http.StatusForbidden })
}

func TestEveryWriteIsReviewedAfreshAndReadsAreNot(t *testing.T) {
	writes := reviewsOf(t, func() {
		for range 5 {
			call(t, http.MethodPost, gw.URL+calls["cancelPipelineRun"], as("operator"))
		}
	})
	if writes["tokenreviews"] != 5 || writes["subjectaccessreviews"] != 5 {
		t.Errorf("5 writes caused %v", writes)
	}
	get(t, "/v1/apps/gate-api/live", as("reader"))
	reads := reviewsOf(t, func() {
		for range 5 {
			get(t, "/v1/apps/gate-api/live", as("reader"))
		}
	})
	if reads["tokenreviews"] > 1 || reads["subjectaccessreviews"] > 1 {
		t.Errorf("5 reads within a moment caused %v", reads)
	}
}

// reviewsOf counts what authz asks the API server to make meanwhile, which is
// reviews, by resource.
func reviewsOf(t *testing.T, f func()) map[string]int {
	t.Helper()
	mark, err := gw.APIServer.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f()
	events, err := gw.APIServer.Audit(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	n := map[string]int{}
	for _, e := range events {
		if e.User == fleet.ServiceIdentity(fleet.AuthzServiceAccount).Username() && e.Verb == "create" {
			n[e.Resource]++
		}
	}
	return n
}

func TestAnAppOfTwoNamespacesIsAConflictForThoseWhoMayReadBoth(t *testing.T) {
	namespaces := gw.APIServer.Client.CoreV1().Namespaces()
	for _, n := range []string{"app-e2e-twice-cicd", "infra-e2e-twice-cicd"} {
		if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: n}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := gw.APIServer.DeleteNamespace(cleanupContext(t), n); err != nil {
				t.Error(err)
			}
		})
	}
	const path = "/v1/apps/e2e-twice/live"
	eventually(t, "authz has seen both namespaces", func() bool { return get(t, path, as("reader")).status == http.StatusConflict })
	a := get(t, path, as("reader"))
	refused(t, a, 409, "GP-API-409")
	for _, n := range []string{"app-e2e-twice-cicd", "infra-e2e-twice-cicd"} {
		if !strings.Contains(string(a.body), n) {
			t.Errorf("the conflict does not name %s: %s", n, a.body)
		}
	}
	refused(t, get(t, path, as("stranger")), 403, "GP-AUTHZ-001")
	bindRole(t, fleet.ReaderRole, "app-e2e-twice-cicd", "stranger")
	eventually(t, "the stranger may read one", func() bool {
		return accessReview(t, username(t, "stranger"), "list", "glidepath.hangar.io", "runs", "app-e2e-twice-cicd")
	})
	refused(t, get(t, path, as("stranger")), 403, "GP-AUTHZ-001")
}

// rule: R073
func TestAnAppMadeAgainUnderTheSameNameInheritsNothing(t *testing.T) {
	const namespace, path = "app-e2e-again-cicd", "/v1/apps/e2e-again/live"
	namespaces := gw.APIServer.Client.CoreV1().Namespaces()
	make := func() {
		t.Helper()
		if _, err := namespaces.Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	make()
	create(t, pipelineRuns, "PipelineRun", namespace, "old", nil)
	eventually(t, "authz has seen the namespace", func() bool { return get(t, path, as("reader")).status == http.StatusOK })
	fresh(t, path, has(namespace+"/old"))
	if err := gw.APIServer.DeleteNamespace(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	make()
	t.Cleanup(func() {
		if err := gw.APIServer.DeleteNamespace(cleanupContext(t), namespace); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the new app is empty", func() bool {
		a := get(t, path, as("reader"))
		return a.status == http.StatusOK && !strings.Contains(string(a.body), `"old"`)
	})
}
