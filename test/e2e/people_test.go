package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/devenv/devtest"
	"hangar.io/glidepath/internal/fleet"
)

// issuer signs ID tokens of people, and serves its key.
type issuer struct {
	url string
	kid string
	key *ecdsa.PrivateKey
}

const (
	tableClient = "glidepath-e2e"
	tableKey    = "e2e-key"
)

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	i := newIssuer(t, tableKey)
	s := httptest.NewServer(serveKeys(t, http.StatusOK, i))
	t.Cleanup(s.Close)
	i.url = s.URL
	return i
}

// newIssuer gives an issuer with a new key, which nobody serves yet.
func newIssuer(t *testing.T, kid string) *issuer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return &issuer{kid: kid, key: key}
}

// serveKeys answers with the keys of these issuers, as one set.
func serveKeys(t *testing.T, status int, of ...*issuer) http.HandlerFunc {
	t.Helper()
	text := base64.RawURLEncoding.EncodeToString
	var keys []map[string]string
	for _, i := range of {
		point, err := i.key.PublicKey.Bytes() // 4, X, Y
		if err != nil {
			t.Fatal(err)
		}
		keys = append(keys, map[string]string{
			"kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "kid": i.kid, "x": text(point[1:33]), "y": text(point[33:]),
		})
	}
	set, err := json.Marshal(map[string]any{"keys": keys})
	if err != nil {
		t.Fatal(err)
	}
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = w.Write(set)
	}
}

// token gives the ID token of a login, with some claims changed.
func (i *issuer) token(t *testing.T, login string, changed jwt.MapClaims) string {
	t.Helper()
	now := time.Now()
	claims := jwt.MapClaims{
		"iss": i.url, "sub": "sub-" + login, "aud": tableClient, "iat": now.Unix(), "exp": now.Add(time.Hour).Unix(), "preferred_username": login,
	}
	for name, value := range changed {
		claims[name] = value
	}
	token := jwt.NewWithClaims(jwt.SigningMethodES256, claims)
	token.Header["kid"] = i.kid
	signed, err := token.SignedString(i.key)
	if err != nil {
		t.Fatal(err)
	}
	return signed
}

// startPeople starts a gateway on the API server of all tests that lets these
// logins in.
func startPeople(t *testing.T, i *issuer, logins ...string) *devenv.Gateway {
	t.Helper()
	return startPeopleEdges(t, 1, i, logins...)
}

// startPeopleEdges is startPeople with several edges, each with an authz that
// reads the issuer's keys for itself.
func startPeopleEdges(t *testing.T, edges int, i *issuer, logins ...string) *devenv.Gateway {
	t.Helper()
	args := []string{
		"--oidc-issuer=" + i.url, "--oidc-jwks-url=" + i.url + "/keys", "--oidc-audience=" + tableClient,
		"--oidc-allowed-users=" + strings.Join(logins, ","),
		// Being listed makes no delegate of a person.
		"--delegates=people:" + logins[0],
	}
	return devtest.Gateway(t, devenv.GatewayConfig{
		Edges: edges, APIServer: gw.APIServer, Redis: gw.Redis, PlannedTo: planned.Addr, Args: map[string][]string{"authz": args},
	})
}

// bindPerson binds a ClusterRole to a login, in every namespace or in one.
func bindPerson(t *testing.T, role, login, namespace string) {
	t.Helper()
	meta := metav1.ObjectMeta{GenerateName: "e2e-people-"}
	ref := rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role}
	subjects := []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "people:" + login}}
	r := gw.APIServer.Client.RbacV1()
	if namespace != "" {
		b, err := r.RoleBindings(namespace).Create(t.Context(), &rbacv1.RoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := r.RoleBindings(namespace).Delete(cleanupContext(t), b.Name, metav1.DeleteOptions{}); err != nil {
				t.Error(err)
			}
		})
		return
	}
	b, err := r.ClusterRoleBindings().Create(t.Context(), &rbacv1.ClusterRoleBinding{ObjectMeta: meta, RoleRef: ref, Subjects: subjects}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := r.ClusterRoleBindings().Delete(cleanupContext(t), b.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
}

// people gives the kinds of people of the table, and a gateway that they sign
// in at.
func people(t *testing.T) map[string]kind {
	t.Helper()
	const reader, operator, app, bare, other = "e2e-reader", "e2e-operator", "e2e-app-reader", "e2e-bare", "e2e-other"
	const gone, named, strange = "e2e-gone", "e2e-named", "e2e-strange"
	i := startIssuer(t)
	g := startPeople(t, i, reader, operator, app, bare, gone, named)
	for _, login := range []string{reader, gone, named} {
		bindPerson(t, fleet.ReaderRole, login, "")
		awaitUserRight(t, "people:"+login, "list", "events")
	}
	bindPerson(t, fleet.OperatorRole, operator, "")
	bindPerson(t, fleet.ReaderRole, app, "app-gate-api-cicd")
	awaitUserRight(t, "people:"+operator, "cancel", "runs")
	awaitUserRight(t, "people:"+app, "list", "runs")
	person := func(login string, more ...change) kind {
		return kind{sends: append([]change{bearer(i.token(t, login, nil))}, more...), caller: "people:" + login, at: g}
	}
	unknown := func(token string) kind { return kind{sends: []change{bearer(token)}, at: g} }
	denyUntilTheEnd(t, g, nobodyDenied+"users: [people:"+named+"]\npeople: [E2E-Gone, "+strange+"]\n", bearer(i.token(t, gone, nil)))
	forger := *i
	forger.key = startIssuer(t).key
	return map[string]kind{
		"person":                   person(bare),
		"reader person":            person(reader),
		"operator person":          person(operator),
		"app-reader person":        person(app),
		"reader person for one":    person(reader, onBehalfOf(ana)),
		"person not listed":        unknown(i.token(t, other, nil)),
		"person of another client": unknown(i.token(t, reader, jwt.MapClaims{"aud": "clearance"})),
		"denied person":            person(gone),
		"person denied by name":    person(named),
		"denied person for one":    person(gone, onBehalfOf(ana)),
		"denied, not listed":       unknown(i.token(t, strange, nil)),
		"person expired":           unknown(i.token(t, reader, jwt.MapClaims{"exp": time.Now().Add(-time.Hour).Unix(), "iat": time.Now().Add(-2 * time.Hour).Unix()})),
		"person forged":            unknown(forger.token(t, reader, nil)),
	}
}
