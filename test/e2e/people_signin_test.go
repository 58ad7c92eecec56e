package e2e_test

import (
	"crypto/rand"
	"crypto/rsa"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/signin"
)

// idToken gives a person's ID token with other claims; a nil takes one away.
func idToken(t *testing.T, login string, claims map[string]any) string {
	t.Helper()
	token, err := gw.Provider.Token(login, claims)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// reviewsSince counts what the gateway asked of the API server.
func reviewsSince(t *testing.T, mark devenv.AuditMark) (tokenReviews int, access []authorizationv1.SubjectAccessReviewSpec) {
	t.Helper()
	events, err := gw.APIServer.Audit(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		switch e.Resource {
		case "tokenreviews":
			tokenReviews++
		case "subjectaccessreviews":
			var review authorizationv1.SubjectAccessReview
			if err := json.Unmarshal(e.Object, &review); err != nil {
				t.Fatal(err)
			}
			access = append(access, review.Spec)
		}
	}
	return tokenReviews, access
}

// rule: R064
func TestAPersonIsAuthorizedByTheClusterUnderTheirLogin(t *testing.T) {
	token := idToken(t, fleet.PersonReader, nil)
	mark := auditMark(t)
	var who struct {
		Username, Kind    string
		Groups, Audiences []string
	}
	ok(t, get(t, "/v1/whoami", bearer(token))).decode(t, &who)
	if who.Username != "people:"+fleet.PersonReader || who.Kind != "person" || strings.Join(who.Groups, " ") != "system:authenticated" {
		t.Errorf("got %+v", who)
	}
	ok(t, get(t, calls["listLive"], bearer(token)))
	reviews, access := reviewsSince(t, mark)
	if reviews != 0 || len(access) != 1 || access[0].User != "people:"+fleet.PersonReader || access[0].UID == "" {
		t.Errorf("%d token reviews, access reviews %+v", reviews, access)
	}
}

// rule: R058, R059, R060, R061, R062
func TestIDTokensAreVerifiedHereAndNeverShownToTheCluster(t *testing.T) {
	stranger, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	good := idToken(t, fleet.PersonOperator, nil)
	head, rest, _ := strings.Cut(good, ".")
	body, _, _ := strings.Cut(rest, ".")
	with := func(header string) string {
		return base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + body + ".c2ln"
	}
	forge := func(kid any) string {
		var claims jwt.MapClaims
		if _, _, err := jwt.NewParser().ParseUnverified(good, &claims); err != nil {
			t.Fatal(err)
		}
		forged := jwt.NewWithClaims(jwt.SigningMethodRS256, claims)
		forged.Header["kid"] = kid
		signed, err := forged.SignedString(stranger)
		if err != nil {
			t.Fatal(err)
		}
		return signed
	}
	parsed, _, err := jwt.NewParser().ParseUnverified(good, jwt.MapClaims{})
	if err != nil {
		t.Fatal(err)
	}
	past := time.Now().Add(-time.Minute).Unix()
	mark := auditMark(t)
	for name, token := range map[string]string{
		"signed by another key":        forge(parsed.Header["kid"]),
		"signed by a key of no name":   forge("made-up"),
		"without a signature":          head + "." + body + ".",
		"of no algorithm":              with(`{"alg":"none","typ":"JWT"}`),
		"of a symmetric algorithm":     with(`{"alg":"HS256","kid":"` + parsed.Header["kid"].(string) + `"}`),
		"for another client":           idToken(t, fleet.PersonOperator, map[string]any{"aud": "clearance"}),
		"that a client got for itself": idToken(t, fleet.PersonOperator, map[string]any{"aud": []string{"clearance", "glidepath-api"}, "azp": "clearance"}),
		"that has expired":             idToken(t, fleet.PersonOperator, map[string]any{"iat": past - 3600, "exp": past}),
		"of nobody":                    idToken(t, fleet.PersonOperator, map[string]any{"preferred_username": nil}),
		"of an empty login":            idToken(t, fleet.PersonOperator, map[string]any{"preferred_username": ""}),
		"of a login that is none":      idToken(t, fleet.PersonOperator, map[string]any{"preferred_username": "system:admin"}),
	} {
		t.Run(name, func(t *testing.T) {
			for _, c := range []struct{ method, op string }{{"GET", "whoami"}, {"GET", "listLive"}, {"POST", "cancelPipelineRun"}} {
				refused(t, call(t, c.method, gw.URL+calls[c.op], bearer(token)), 401, "GP-AUTH-002")
			}
			refused(t, get(t, "/v1/whoami", header("X-Glidepath-Authorization", "Bearer "+token)), 401, "GP-AUTH-002")
		})
	}
	for _, aud := range []any{"glidepath-api", []string{"glidepath-api"}} {
		ok(t, get(t, "/v1/whoami", bearer(idToken(t, fleet.PersonOperator, map[string]any{"aud": aud}))))
	}
	if reviews, access := reviewsSince(t, mark); reviews != 0 || len(access) != 0 {
		t.Errorf("the cluster was asked: %d token reviews, access reviews %+v", reviews, access)
	}
	// The same look finds one of a token that is the cluster's to judge.
	mark = auditMark(t)
	refused(t, get(t, "/v1/whoami", bearer(unknownIssuer(t))), 401, "GP-AUTH-002")
	if reviews, _ := reviewsSince(t, mark); reviews != 1 {
		t.Errorf("%d token reviews of a token of another issuer", reviews)
	}
}

// rule: R067, R069
func TestWhoMayNotSignInOrSpeakForOthers(t *testing.T) {
	out := idToken(t, fleet.PersonStranger, nil)
	taken := idToken(t, fleet.PersonOperator, map[string]any{"federated_claims": map[string]any{"connector_id": "github", "user_id": "9"}})
	person := idToken(t, fleet.PersonOperator, nil)
	for _, op := range api.Operations() {
		refused(t, call(t, op.Method, gw.URL+calls[op.ID], bearer(out)), 403, "GP-AUTH-005")
		refused(t, call(t, op.Method, gw.URL+calls[op.ID], bearer(taken)), 403, "GP-AUTH-005")
		refused(t, call(t, op.Method, gw.URL+calls[op.ID], bearer(person), onBehalfOf("user:default/ana")), 403, "GP-AUTH-003")
	}
}

// rule: R066
func TestAPersonWritesOnlyWithARoleForIt(t *testing.T) {
	write := func(login, op string) answer {
		return call(t, http.MethodPost, gw.URL+calls[op], bearer(idToken(t, login, nil)))
	}
	for _, op := range []string{"rerunPipelineRun", "cancelPipelineRun", "promoteEnvironment", "rollbackEnvironment"} {
		refused(t, write(fleet.PersonReader, op), 403, "GP-AUTHZ-001")
		refused(t, write(fleet.PersonNew, op), 403, "GP-AUTHZ-001")
		if a := write(fleet.PersonOperator, op); a.status != http.StatusOK {
			t.Errorf("%s: %d %s", op, a.status, a.body)
		}
	}
	bindings := gw.APIServer.Client.RbacV1().RoleBindings("app-gate-api-cicd")
	bound, err := bindings.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "e2e-person-"},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "glidepath-api-operator"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: "people:" + fleet.PersonNew}},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := bindings.Delete(t.Context(), bound.Name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	}()
	eventually(t, "a bound person writes", func() bool { return write(fleet.PersonNew, "rerunPipelineRun").status == http.StatusOK })
	refused(t, write(fleet.PersonNew, "promoteEnvironment"), 403, "GP-AUTHZ-001")
}

// No process is restarted for a new key.
func TestTheIssuersKeysMayChange(t *testing.T) {
	before := idToken(t, fleet.PersonReader, nil)
	if err := gw.Provider.Rotate(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a token of the new key is good", func() bool {
		return get(t, "/v1/whoami", bearer(idToken(t, fleet.PersonReader, nil))).status == http.StatusOK
	})
	ok(t, get(t, "/v1/whoami", bearer(before)))
}

// rule: R070
func TestAPersonSignsInFromATerminal(t *testing.T) {
	token, err := signin.Login(t.Context(), signin.Config{
		Issuer: gw.Provider.Issuer, Client: "glidepath-api", Transport: client.Transport,
		Show: func(p signin.Prompt) {
			if err := gw.Provider.Approve(t.Context(), p.Code, fleet.PersonOperator); err != nil {
				t.Error(err)
			}
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	var who struct{ Username string }
	ok(t, get(t, "/v1/whoami", bearer(token.Secret()))).decode(t, &who)
	if who.Username != "people:"+fleet.PersonOperator || token.Login != fleet.PersonOperator {
		t.Errorf("got %+v, %s", who, token.Login)
	}
}
