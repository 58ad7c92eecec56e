package e2e_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/internal/devenv"
	"hangar.io/glidepath/internal/fleet"
)

const (
	// deniedName is an account that a list denies by its name.
	deniedName = "e2e-denied"
	// deniedTeam is a namespace whose accounts a list denies by their group.
	deniedTeam = "e2e-denied-team"
	// dora is a person whom a list denies in another spelling.
	dora = "user:default/dora"

	nobodyDenied = "version: \"1\"\n"
	listOfDenied = nobodyDenied +
		"users: [{name: " + "system:serviceaccount:" + fleet.DemoNamespace + ":" + deniedName + ", reason: e2e}]\n" +
		"people: [user:default/Dora]\n" +
		"groups: [system:serviceaccounts:" + deniedTeam + "]\n"
)

// setDenyList gives a gateway another list and waits until it is in force, as
// a caller sees it who is asked for with each try.
func setDenyList(t *testing.T, g *devenv.Gateway, list string, inForce func() bool) {
	t.Helper()
	if err := g.SetDenyList(list); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the deny-list is in force", inForce)
}

// denyUntilTheEnd has a list in force until the test ends.
func denyUntilTheEnd(t *testing.T, g *devenv.Gateway, list string, witness change) {
	t.Helper()
	t.Cleanup(func() {
		if err := g.SetDenyList(nobodyDenied); err != nil {
			t.Error(err)
		}
	})
	setDenyList(t, g, list, func() bool {
		return call(t, http.MethodGet, g.URL+"/v1/whoami", witness).status == http.StatusForbidden
	})
}

// deniedAccounts makes the two accounts that listOfDenied denies, each with all
// rights in gate-api, and gives their tokens.
func deniedAccounts(t *testing.T) (byName, byGroup string) {
	t.Helper()
	byName = makeAccount(t, deniedName)
	api := gw.APIServer
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: deniedTeam}}
	if _, err := api.Client.CoreV1().Namespaces().Create(t.Context(), namespace, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := api.DeleteNamespace(cleanupContext(t), deniedTeam); err != nil {
			t.Error(err)
		}
	})
	member := fleet.Caller{Name: deniedName, Namespace: deniedTeam, ServiceAccount: deniedName}
	object := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: deniedName}}
	if _, err := api.Client.CoreV1().ServiceAccounts(deniedTeam).Create(t.Context(), object, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	byGroup, err := fleet.Token(t.Context(), api.Admin, member, time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []fleet.Caller{account(deniedName), member} {
		for _, role := range []string{fleet.ReaderRole, fleet.OperatorRole, fleet.ReleaserRole} {
			bindAccount(t, role, "app-gate-api-cicd", c)
		}
		awaitRight(t, c, "list", "runs")
		awaitRight(t, c, "cancel", "runs")
		awaitRight(t, c, "promote", "environments")
	}
	return byName, byGroup
}

// denied gives the kinds of callers that a deny-list names, which is in force
// for the whole table.
func denied(t *testing.T) map[string]kind {
	t.Helper()
	byName, byGroup := deniedAccounts(t)
	denyUntilTheEnd(t, gw, listOfDenied, bearer(byName))
	name := account(deniedName).Username()
	delegate := username(t, "delegate")
	signed := byName[:strings.LastIndex(byName, ".")+1]
	return map[string]kind{
		"denied by name":          {sends: []change{bearer(byName)}, caller: name},
		"denied by group":         {sends: []change{bearer(byGroup)}, caller: "system:serviceaccount:" + deniedTeam + ":" + deniedName},
		"denied, for one":         {sends: []change{bearer(byName), onBehalfOf(ana)}, caller: name},
		"denied, forged":          {sends: []change{bearer(signed + tokens["reader"][strings.LastIndex(tokens["reader"], ".")+1:])}},
		"for a denied one":        {sends: []change{as("delegate"), onBehalfOf(dora)}, caller: delegate, person: dora},
		"for a denied and a good": {sends: []change{as("delegate"), onBehalfOf(dora), onBehalfOf(ana)}, caller: delegate},
	}
}

// A call that costs no review is answered from what authz remembers. The list
// comes after that, so what is remembered helps nobody who is on it; and once
// the entry is gone, so is the refusal.
func TestNothingRememberedOutlivesAnEntryOfTheDenyList(t *testing.T) {
	byName, byGroup := deniedAccounts(t)
	t.Cleanup(func() {
		if err := gw.SetDenyList(nobodyDenied); err != nil {
			t.Error(err)
		}
	})
	for name, who := range map[string][]change{
		"a user":                    {bearer(byName)},
		"a member of a group":       {bearer(byGroup)},
		"a person a delegate names": {as("delegate"), onBehalfOf(dora)},
	} {
		t.Run(name, func(t *testing.T) {
			read := func() answer { return get(t, calls["listLive"], who...) }
			write := func() answer { return call(t, http.MethodPost, gw.URL+calls["cancelPipelineRun"], who...) }
			ok(t, write())
			ok(t, read())
			eventually(t, "a read is answered from what is remembered", func() bool {
				return len(reviewsOf(t, func() { ok(t, read()) })) == 0
			})
			began := time.Now()
			// Writes are reviewed afresh, so they show when the list is in force.
			setDenyList(t, gw, listOfDenied, func() bool { return write().status == http.StatusForbidden })
			a := read()
			t.Logf("in force after %s", time.Since(began).Round(time.Millisecond))
			refused(t, a, 403, "GP-AUTH-006")
			refused(t, write(), 403, "GP-AUTH-006")
			refused(t, get(t, calls["whoami"], who...), 403, "GP-AUTH-006")
			ok(t, get(t, calls["listLive"], as("delegate"), onBehalfOf(ana)))

			setDenyList(t, gw, nobodyDenied, func() bool { return write().status == http.StatusOK })
			ok(t, read())
		})
	}
}
