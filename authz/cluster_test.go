package authz_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	callers      = "glidepath-callers"
	authzAccount = "glidepath-authz"
)

// connect starts an authz that asks the real API server with a ServiceAccount
// of its own, which may make reviews and know namespaces and nothing else.
func connect(t *testing.T, audiences ...string) *process {
	t.Helper()
	must(t, cluster.EnsureServiceAccount(t.Context(), callers, authzAccount))
	clusterRole(t, authzAccount,
		rbacv1.PolicyRule{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"namespaces"}, Verbs: []string{"list", "watch"}},
	)
	bindEverywhere(t, authzAccount, authzAccount)
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	must(t, cluster.WriteKubeconfig(t.Context(), kubeconfig, "", callers, authzAccount))
	c := configuration(t, kubeconfig)
	c.TokenAudiences = audiences
	return run(t, c)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func clusterRole(t *testing.T, name string, rules ...rbacv1.PolicyRule) {
	t.Helper()
	roles := cluster.Client.RbacV1().ClusterRoles()
	_ = roles.Delete(t.Context(), name, metav1.DeleteOptions{})
	_, err := roles.Create(t.Context(), &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name}, Rules: rules}, metav1.CreateOptions{})
	must(t, err)
}

// readRuns is a role that may list runs and nothing else.
func readRuns(t *testing.T) string {
	t.Helper()
	const name = "read-runs"
	clusterRole(t, name, rbacv1.PolicyRule{APIGroups: []string{"glidepath.hangar.io"}, Resources: []string{"runs"}, Verbs: []string{"list"}})
	return name
}

func bindEverywhere(t *testing.T, role, account string) {
	t.Helper()
	_, err := cluster.Client.RbacV1().ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: callers, Name: account}},
	}, metav1.CreateOptions{})
	must(t, err)
}

func bindIn(t *testing.T, namespace, role, account string) {
	t.Helper()
	_, err := cluster.Client.RbacV1().RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "test-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: callers, Name: account}},
	}, metav1.CreateOptions{})
	must(t, err)
}

func account(t *testing.T, name string, audiences ...string) (token string) {
	t.Helper()
	must(t, cluster.EnsureServiceAccount(t.Context(), callers, name))
	token, err := cluster.Token(t.Context(), callers, name, time.Hour, audiences...)
	must(t, err)
	return token
}

func namespace(t *testing.T, name string) {
	t.Helper()
	_, err := cluster.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	must(t, err)
}

// rule: R071, R073, R077, R079, R266
func TestTheClustersOwnAccountsAndRights(t *testing.T) {
	for _, n := range []string{"app-one-cicd", "app-other-cicd", "infra-base-cicd"} {
		namespace(t, n)
	}
	role := readRuns(t)
	reader, appReader, stranger := account(t, "reader"), account(t, "app-reader"), account(t, "stranger")
	bindEverywhere(t, role, "reader")
	bindIn(t, "app-one-cicd", role, "app-reader")
	p := connect(t)
	for name, tc := range map[string]struct{ op, path, token, rule string }{
		"a stranger is somebody":                 {"whoami", "/v1/whoami", stranger, ""},
		"a reader reads an app":                  {"listLive", "/v1/apps/one/live", reader, ""},
		"a reader reads an InfraService":         {"listLive", "/v1/apps/base/live", reader, ""},
		"a reader reads the fleet":               {"listLiveRuns", "/v1/live", reader, ""},
		"a reader is told that there is no app":  {"listLive", "/v1/apps/none/live", reader, "GP-API-404"},
		"a reader has no other right":            {"getLiveLogs", "/v1/apps/one/live/taskruns/t/logs/c", reader, "GP-AUTHZ-001"},
		"a reader may not write":                 {"cancelPipelineRun", "/v1/apps/one/pipelineruns/a/cancel", reader, "GP-AUTHZ-001"},
		"an app's reader reads the app":          {"listLive", "/v1/apps/one/live", appReader, ""},
		"an app's reader reads it in the fleet":  {"listLiveRuns", "/v1/live?app=one", appReader, ""},
		"an app's reader does not see the fleet": {"listLiveRuns", "/v1/live", appReader, "GP-AUTHZ-001"},
		"an app's reader reads no other app":     {"listLive", "/v1/apps/other/live", appReader, "GP-AUTHZ-001"},
		"an app's reader learns of none":         {"listLive", "/v1/apps/none/live", appReader, "GP-AUTHZ-001"},
		"a stranger reads nothing":               {"listLive", "/v1/apps/one/live", stranger, "GP-AUTHZ-001"},
		"a stranger learns of nothing":           {"listLive", "/v1/apps/none/live", stranger, "GP-AUTHZ-001"},
	} {
		t.Run(name, func(t *testing.T) {
			p.eventually("the API server knows the right", func() bool { return p.check(tc.op, tc.path, tc.token).rule() == tc.rule })
		})
	}
	if c := p.check("listLive", "/v1/apps/base/live", reader).claims(); c.Subject != "system:serviceaccount:"+callers+":reader" || c.Namespace != "infra-base-cicd" {
		t.Errorf("got %+v", c)
	}
	ns, err := cluster.Client.CoreV1().Namespaces().Get(t.Context(), "app-one-cicd", metav1.GetOptions{})
	must(t, err)
	if c := p.check("listLive", "/v1/apps/one/live", reader).claims(); c.NamespaceUID != string(ns.UID) {
		t.Errorf("uid %q, want %q", c.NamespaceUID, ns.UID)
	}
	who := p.check("whoami", "/v1/whoami", stranger).claims()
	if who.Who == nil || !slices.Contains(who.Who.Groups, "system:serviceaccounts:"+callers) || !slices.Contains(who.Who.Groups, "system:authenticated") || len(who.Who.Audiences) == 0 {
		t.Errorf("whoami: %+v", who.Who)
	}
}

// rule: R389
func TestTokensThatTheClusterDoesNotAccept(t *testing.T) {
	good := account(t, "tokens")
	deleted := account(t, "deleted")
	must(t, cluster.Client.CoreV1().ServiceAccounts(callers).Delete(t.Context(), "deleted", metav1.DeleteOptions{}))
	parts := strings.Split(good, ".")
	other := strings.Split(account(t, "tokens-other"), ".")
	p := connect(t)
	if got := p.check("whoami", "/v1/whoami", good).rule(); got != "" {
		t.Fatalf("the good one: %s", got)
	}
	for name, token := range map[string]string{
		"of a deleted account": deleted,
		"for another audience": account(t, "tokens", "clearance"),
		"expired":              resigned(t, good, func(c jwt.MapClaims) { c["exp"] = time.Now().Add(-time.Hour).Unix() }),
		"not yet good":         resigned(t, good, func(c jwt.MapClaims) { c["nbf"] = time.Now().Add(time.Hour).Unix() }),
		"of another issuer":    resigned(t, good, func(c jwt.MapClaims) { c["iss"] = "https://elsewhere.example" }),
		"of an account made again": resigned(t, good, func(c jwt.MapClaims) {
			c["kubernetes.io"].(map[string]any)["serviceaccount"].(map[string]any)["uid"] = "another"
		}),
		"with another's signature":   parts[0] + "." + parts[1] + "." + other[2],
		"with another's claims":      parts[0] + "." + other[1] + "." + parts[2],
		"without a signature":        parts[0] + "." + parts[1] + ".",
		"that is no JWT":             "abc.def",
		"that is anything":           "undefined",
		"that is a bootstrap token ": "abcdef.0123456789abcdef",
	} {
		t.Run(name, func(t *testing.T) {
			for op, path := range map[string]string{"whoami": "/v1/whoami", "cancelPipelineRun": "/v1/apps/x/pipelineruns/a/cancel"} {
				if got := p.check(op, path, token).rule(); got != "GP-AUTH-002" {
					t.Errorf("%s: %q", op, got)
				}
			}
		})
	}
}

// resigned gives a token of the cluster's own key with other claims.
func resigned(t *testing.T, token string, change func(jwt.MapClaims)) string {
	t.Helper()
	var claims jwt.MapClaims
	parsed, _, err := jwt.NewParser().ParseUnverified(token, &claims)
	must(t, err)
	change(claims)
	raw, err := os.ReadFile(cluster.ServiceAccountKeyFile())
	must(t, err)
	key, err := jwt.ParseECPrivateKeyFromPEM(raw)
	must(t, err)
	again := jwt.NewWithClaims(parsed.Method, claims)
	again.Header["kid"] = parsed.Header["kid"]
	signed, err := again.SignedString(key)
	must(t, err)
	return signed
}

func TestTheResignedTokenIsGoodUnlessItIsChanged(t *testing.T) {
	if got := connect(t).check("whoami", "/v1/whoami", resigned(t, account(t, "tokens"), func(jwt.MapClaims) {})).rule(); got != "" {
		t.Errorf("the tests above would refuse anything: %s", got)
	}
}

func TestAnAudienceOfItsOwn(t *testing.T) {
	p := connect(t, "glidepath")
	for name, tc := range map[string]struct {
		audiences []string
		rule      string
	}{
		"a token for it":              {[]string{"glidepath"}, ""},
		"a token for it and others":   {[]string{"clearance", "glidepath"}, ""},
		"a token for the API server":  {nil, "GP-AUTH-002"},
		"a token for something else":  {[]string{"clearance"}, "GP-AUTH-002"},
		"a token for a longer name":   {[]string{"glidepath-api"}, "GP-AUTH-002"},
		"a token for it in capitals ": {[]string{"GLIDEPATH"}, "GP-AUTH-002"},
	} {
		t.Run(name, func(t *testing.T) {
			a := p.check("whoami", "/v1/whoami", account(t, "audiences", tc.audiences...))
			if got := a.rule(); got != tc.rule {
				t.Errorf("got %q, want %q", got, tc.rule)
			}
			if a.allowed() && !slices.Equal(a.claims().Who.Audiences, []string{"glidepath"}) {
				t.Errorf("accepted for %v", a.claims().Who.Audiences)
			}
		})
	}
}

// rule: R005, R072
func TestWhatReachesTheClusterIsOneReviewOfTheCallerInFull(t *testing.T) {
	namespace(t, "app-asked-cicd")
	token := account(t, "asked")
	p := connect(t)
	p.eventually("the namespace is known", func() bool {
		return p.check("listLive", "/v1/apps/asked/live", account(t, "reader")).rule() != "GP-API-502"
	})
	mark, err := cluster.AuditMark(t.Context())
	must(t, err)
	for range 3 {
		p.check("whoami", "/v1/whoami", token)
	}
	for range 3 {
		p.check("getRunLogs", "/v1/apps/asked/runs/4f0c7d1e-2b6a-4c39-9d5e-8a1f3b2c7e90/logs/t?namespace=kube-system", token)
	}
	events, err := cluster.Audit(t.Context(), mark)
	must(t, err)
	var tokens int
	var specs []authorizationv1.SubjectAccessReviewSpec
	for _, e := range events {
		if e.User != "system:serviceaccount:"+callers+":"+authzAccount {
			continue
		}
		switch e.Resource {
		case "tokenreviews":
			tokens++
		case "subjectaccessreviews":
			var review authorizationv1.SubjectAccessReview
			must(t, json.Unmarshal(e.Object, &review))
			specs = append(specs, review.Spec)
		}
	}
	if tokens != 1 || len(specs) != 1 {
		t.Fatalf("%d token reviews, access reviews %+v", tokens, specs)
	}
	sa, err := cluster.Client.CoreV1().ServiceAccounts(callers).Get(t.Context(), "asked", metav1.GetOptions{})
	must(t, err)
	got, want := specs[0], authorizationv1.ResourceAttributes{
		Namespace: "app-asked-cicd", Verb: "get", Group: "glidepath.hangar.io", Resource: "runs", Subresource: "logs",
	}
	if got.User != "system:serviceaccount:"+callers+":asked" || got.UID != string(sa.UID) || !slices.Contains(got.Groups, "system:authenticated") ||
		len(got.Extra["authentication.kubernetes.io/credential-id"]) != 1 || *got.ResourceAttributes != want {
		t.Errorf("got %+v %+v", got, got.ResourceAttributes)
	}
}

// rule: R402
func TestAnAPIServerThatIsAwayRefusesAndComesBack(t *testing.T) {
	namespace(t, "app-away-cicd")
	token := account(t, "away")
	bindEverywhere(t, readRuns(t), "away")
	p := connect(t)
	p.eventually("it works", func() bool { return p.check("listLive", "/v1/apps/away/live", token).allowed() })
	for name, part := range map[string]struct {
		away func()
		back func() error
	}{
		"hangs": {cluster.Process.Pause, func() error {
			cluster.Process.Resume()
			return nil
		}},
		"has died": {cluster.Process.Kill, func() error { return cluster.Process.Restart(t.Context()) }},
	} {
		t.Run(name, func(t *testing.T) {
			other := account(t, "away") // a token that nobody has seen yet
			part.away()
			for what, a := range map[string]answer{
				"a new token": p.check("listLive", "/v1/apps/away/live", other),
				"a write":     p.check("cancelPipelineRun", "/v1/apps/away/pipelineruns/a/cancel", token),
			} {
				if a.rule() != "GP-API-502" || a.took > 4*time.Second {
					t.Errorf("%s: %q after %s", what, a.rule(), a.took)
				}
			}
			must(t, part.back())
			p.eventually("it works again", func() bool { return p.check("listLive", "/v1/apps/away/live", other).allowed() })
		})
	}
}

// A namespace that is being deleted is there until it is gone, unless its
// other half stays.
func TestANamespaceThatIsBeingDeletedInTheCluster(t *testing.T) {
	namespace(t, "app-ending-cicd")
	token := account(t, "ending")
	bindEverywhere(t, readRuns(t), "ending")
	p := connect(t)
	read := func() answer { return p.check("listLive", "/v1/apps/ending/live", token) }
	p.eventually("it is there", func() bool { return read().allowed() })
	// Nobody finalizes namespaces here, so it stays in its deletion.
	must(t, cluster.Client.CoreV1().Namespaces().Delete(t.Context(), "app-ending-cicd", metav1.DeleteOptions{}))
	namespace(t, "infra-ending-cicd")
	p.eventually("the one that stays is taken", func() bool { return read().allowed() && read().claims().Namespace == "infra-ending-cicd" })
	must(t, cluster.DeleteNamespace(t.Context(), "infra-ending-cicd"))
	p.eventually("the other half is gone", func() bool { return read().allowed() && read().claims().Namespace == "app-ending-cicd" })
	must(t, cluster.DeleteNamespace(t.Context(), "app-ending-cicd"))
	p.eventually("both are gone", func() bool { return read().rule() == "GP-API-404" })
}
