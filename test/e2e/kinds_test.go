package e2e_test

import (
	"maps"
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/fleet"
)

// kind is a kind of caller of the table in testdata/callers.txt.
type kind struct {
	// sends is what a call of this kind carries.
	sends []change
	// caller and person are whom the audit line of a call names; empty is
	// nobody, as for callers that are not known.
	caller, person string
	// at is the gateway that is called; nil is that of all tests.
	at *devenv.Gateway
}

const ana = "user:default/ana"

// appDelegate is a delegate with rights in gate-api alone.
const appDelegate = "e2e-app-delegate"

// account is the caller of a ServiceAccount that a test makes.
func account(name string) fleet.Caller {
	return fleet.Caller{Name: name, Namespace: fleet.DemoNamespace, ServiceAccount: name}
}

// makeAccount makes a ServiceAccount for a test and gives a token of it.
func makeAccount(t *testing.T, name string) string {
	t.Helper()
	accounts := gw.APIServer.Client.CoreV1().ServiceAccounts(fleet.DemoNamespace)
	if _, err := accounts.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := accounts.Delete(cleanupContext(t), name, metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	token, err := fleet.Token(t.Context(), gw.APIServer.Admin, account(name), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// revoked gives a good token whose ServiceAccount is gone.
func revoked(t *testing.T) string {
	t.Helper()
	const name = "e2e-gone"
	var token string
	t.Run("revoking a token", func(t *testing.T) { token = makeAccount(t, name) })
	eventually(t, "the token is not accepted any more", func() bool {
		return call(t, http.MethodPost, gw.URL+calls["cancelPipelineRun"], bearer(token)).status == http.StatusUnauthorized
	})
	return token
}

// kinds gives every kind of caller by its name in the table, with the accounts
// and rights that it needs.
func kinds(t *testing.T) map[string]kind {
	t.Helper()
	sample := func(name string, more ...change) kind {
		return kind{sends: append([]change{as(name)}, more...), caller: username(t, name)}
	}
	unknown := func(sends ...change) kind { return kind{sends: sends} }
	reader, _ := fleet.LookupCaller("reader")
	otherAudience, err := fleet.Token(t.Context(), gw.APIServer.Admin, reader, time.Hour, "clearance")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]kind{
		"no token":       unknown(),
		"Basic":          unknown(header("Authorization", "Basic cmVhZGVyOng=")),
		"empty bearer":   unknown(header("Authorization", "Bearer ")),
		"two tokens":     unknown(as("reader"), as("stranger")),
		"garbage":        unknown(bearer("nonsense")),
		"forged":         unknown(bearer(forged(t))),
		"unsigned":       unknown(bearer(tokens["reader"][:strings.LastIndex(tokens["reader"], ".")+1])),
		"expired":        unknown(bearer(expired(t))),
		"other audience": unknown(bearer(otherAudience)),
		"other issuer":   unknown(bearer(unknownIssuer(t))),
		"revoked":        unknown(bearer(revoked(t))),

		"stranger": sample("stranger"),
		"reader":   sample("reader"),
		"operator": sample("operator"),
		"releaser": sample("releaser"),

		"app-reader": sample("app-reader"),

		"for nobody":       sample("delegate"),
		"for a person":     forPerson(sample("delegate", onBehalfOf(ana)), ana),
		"for two":          sample("delegate", onBehalfOf(ana), onBehalfOf("user:default/ben")),
		"for a bad name":   sample("delegate", onBehalfOf("ana,ben")),
		"reader for one":   sample("reader", onBehalfOf(ana)),
		"operator for one": sample("operator", onBehalfOf(ana)),
		"stranger for one": sample("stranger", onBehalfOf(ana)),
	}
	made := func(name string, bind func(name string)) kind {
		k := kind{sends: []change{bearer(makeAccount(t, name))}, caller: account(name).Username()}
		bind(name)
		return k
	}
	inGateAPI := func(roles ...string) func(string) {
		return func(name string) {
			for _, role := range roles {
				bindAccount(t, role, "app-gate-api-cicd", account(name))
			}
		}
	}
	out["app-operator"] = made("e2e-app-operator", inGateAPI(fleet.OperatorRole))
	out["app-releaser"] = made("e2e-app-releaser", inGateAPI(fleet.ReleaserRole))
	out["reader+releaser"] = made("e2e-reader-releaser", inGateAPI(fleet.ReaderRole, fleet.ReleaserRole))
	delegate := made(appDelegate, inGateAPI(fleet.ReaderRole, fleet.OperatorRole, fleet.ReleaserRole))
	out["app-delegate for nobody"] = delegate
	out["app-delegate for a person"] = forPerson(kind{sends: append([]change{onBehalfOf(ana)}, delegate.sends...), caller: delegate.caller}, ana)
	maps.Copy(out, people(t))
	maps.Copy(out, denied(t))
	awaitRight(t, account("e2e-app-operator"), "cancel", "runs")
	awaitRight(t, account("e2e-app-releaser"), "promote", "environments")
	awaitRight(t, account("e2e-reader-releaser"), "promote", "environments")
	awaitRight(t, account("e2e-reader-releaser"), "list", "runs")
	awaitRight(t, account(appDelegate), "promote", "environments")
	return out
}

// forPerson is a kind whose audit lines name a person.
func forPerson(k kind, person string) kind {
	k.person = person
	return k
}

// awaitRight waits until the API server knows of a right in gate-api.
func awaitRight(t *testing.T, c fleet.Caller, verb, resource string) {
	t.Helper()
	awaitUserRight(t, c.Username(), verb, resource)
}

func awaitUserRight(t *testing.T, user, verb, resource string) {
	t.Helper()
	eventually(t, user+" may "+verb+" "+resource, func() bool {
		return accessReview(t, user, verb, "glidepath.hangar.io", resource, "app-gate-api-cicd")
	})
}
