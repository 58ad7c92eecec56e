package e2e_test

import (
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/fleet"
	"hangar.io/glidepath/internal/standin/faultproxy"
)

// capabilities is what whoami answers about an app.
type capabilities struct {
	App        string
	Namespace  *string
	Operations []struct {
		Op, Tier, Rule, Hint string
		Allowed              bool
	}
}

func capable(t *testing.T, app string, who ...change) capabilities {
	t.Helper()
	var c capabilities
	ok(t, get(t, "/v1/whoami?app="+app, who...)).decode(t, &c)
	return c
}

// What whoami says about an app is what each of the 30 calls then gets, from
// the real cluster through the real edge.
func TestCapabilitiesAreWhatTheCallsThenGet(t *testing.T) {
	for _, name := range []string{"app-both-cicd", "infra-both-cicd"} {
		_, err := gw.APIServer.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			if err := gw.APIServer.DeleteNamespace(cleanupContext(t), name); err != nil {
				t.Error(err)
			}
		})
	}
	eventually(t, "the edge knows both namespaces", func() bool {
		return get(t, "/v1/apps/both/live", as("reader")).status == http.StatusConflict
	})
	for name, who := range map[string][]change{
		"a stranger":              {as("stranger")},
		"an app's reader":         {as("app-reader")},
		"a reader":                {as("reader")},
		"an operator":             {as("operator")},
		"a releaser":              {as("releaser")},
		"a delegate for nobody":   {as("delegate")},
		"a delegate for a person": {as("delegate"), onBehalfOf("user:default/ana")},
		"by the proxy's header":   {header("X-Glidepath-Authorization", "Bearer "+tokens["operator"])},
		"a person who reads":      {bearer(idToken(t, fleet.PersonReader, nil))},
		"a person who writes":     {bearer(idToken(t, fleet.PersonOperator, nil))},
		"a person without rights": {bearer(idToken(t, fleet.PersonNew, nil))},
	} {
		for _, app := range []string{"gate-api", "postgres", "both", "made-upp"} {
			t.Run(name+" about "+app, func(t *testing.T) { comparesWithCalls(t, app, who) })
		}
	}
}

// absent has the rules of operations that are called for something that is not there.
var absent = map[string]string{"getLiveLogs": "GP-LIVE-404", "getRun": "GP-API-404", "getRunLogs": "GP-API-404", "explainRun": "GP-API-404", "getTestReport": "GP-API-404"}

func comparesWithCalls(t *testing.T, app string, who []change) {
	t.Helper()
	said := capable(t, app, who...)
	if said.App != app || len(said.Operations) != len(api.Operations()) {
		t.Fatalf("got %+v", said)
	}
	mayAny := false
	for i, op := range api.Operations() {
		one := said.Operations[i]
		if one.Op != op.ID || one.Tier != string(op.Tier) {
			t.Fatalf("operation %d is %+v", i, one)
		}
		path := strings.Replace(calls[op.ID], "/apps/gate-api/", "/apps/"+app+"/", 1)
		if op.Scope == api.ScopeFleet {
			path += "?app=" + app
		}
		a := begun(t, op.Method, gw.URL+path, who...)
		if one.Allowed {
			mayAny = mayAny || op.Scope != api.ScopeSelf
			// A call that is allowed may be about a run that is not there.
			there := a.status == http.StatusOK || absent[op.ID] != "" && a.problem(t).Rule == absent[op.ID]
			if !there || one.Rule != "" || one.Hint != "" {
				t.Errorf("%s: said to be allowed (%+v), and the call gets %d %.200s", op.ID, one, a.status, a.body)
			}
			continue
		}
		if b := a.problem(t); b.Rule != one.Rule || b.Hint != one.Hint {
			t.Errorf("%s: said to be %s (%s), and the call gets %s (%s)", op.ID, one.Rule, one.Hint, b.Rule, b.Hint)
		}
	}
	if (said.Namespace != nil) != mayAny {
		t.Errorf("namespace %v, and may call anything: %t", said.Namespace, mayAny)
	}
}

// begun gives how a call is answered, with the body of a refusal alone: a stream
// that is allowed goes on for as long as its caller reads.
func begun(t *testing.T, method, target string, who ...change) answer {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, target, http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range who {
		c(req)
	}
	res, err := client.Do(req)
	if err != nil {
		t.Fatalf("%s %s: %v", method, target, err)
	}
	defer func() { _ = res.Body.Close() }()
	a := answer{status: res.StatusCode, header: res.Header}
	if a.status >= http.StatusBadRequest {
		if a.body, err = io.ReadAll(io.LimitReader(res.Body, 1<<20)); err != nil {
			t.Fatalf("%s %s: %v", method, target, err)
		}
	}
	return a
}

// staysOpen says whether a call that is allowed is answered for as long as its
// caller stays. A stand-in ends what it answers, and so does a log that is not
// followed.
func staysOpen(op api.Operation) bool { return op.Stream && !op.Planned && op.ID != "getLiveLogs" }

// Who is not let in is told so by whoami as by every call, whatever the app.
func TestWhoIsNotLetInHasNoCapabilities(t *testing.T) {
	reader, _ := fleet.LookupCaller("reader")
	otherAudience, err := fleet.Token(t.Context(), gw.APIServer.Admin, reader, time.Hour, "clearance")
	if err != nil {
		t.Fatal(err)
	}
	for name, tc := range map[string]struct {
		token  string
		status int
		rule   string
	}{
		"a token for another audience":        {otherAudience, 401, "GP-AUTH-002"},
		"a person's token for another client": {idToken(t, fleet.PersonReader, map[string]any{"aud": "clearance"}), 401, "GP-AUTH-002"},
		"a person who may not sign in":        {idToken(t, fleet.PersonStranger, nil), 403, "GP-AUTH-005"},
	} {
		t.Run(name, func(t *testing.T) { notLetIn(t, tc.status, tc.rule, bearer(tc.token)) })
	}
}

// notLetIn compares whoami about an app with every call.
func notLetIn(t *testing.T, status int, rule string, who ...change) {
	t.Helper()
	refused(t, get(t, "/v1/whoami?app=gate-api", who...), status, rule)
	for _, op := range api.Operations() {
		refused(t, call(t, op.Method, gw.URL+calls[op.ID], who...), status, rule)
	}
}

func TestCapabilitiesTellNobodyWhichAppsExist(t *testing.T) {
	for _, caller := range []string{"stranger", "app-reader"} {
		body := func(app string) string {
			a := ok(t, get(t, "/v1/whoami?app="+app, as(caller)))
			if a.header.Get("Cache-Control") != "no-store" {
				t.Error("the answer may be kept")
			}
			return strings.ReplaceAll(string(a.body), app, "APP")
		}
		if real, madeUp := body("boarding-api"), body("made-upp"); real != madeUp {
			t.Errorf("the bodies differ:\n%s\n%s", real, madeUp)
		}
	}
}

func TestWhoamiRefusesWhatIsNoApp(t *testing.T) {
	for _, query := range []string{"app=", "app=Gate", "app=gate_api", "app=a&app=a", "app=%zz", "app=" + strings.Repeat("a", 55)} {
		refused(t, get(t, "/v1/whoami?"+query, as("reader")), 400, "GP-API-400")
		refused(t, get(t, "/v1/whoami?"+query), 401, "GP-AUTH-001")
	}
	if a := ok(t, get(t, "/v1/whoami?application=x", as("reader"))); strings.Contains(string(a.body), "operations") {
		t.Errorf("got %s", a.body)
	}
	if l := auditOf(t, get(t, "/v1/whoami?app=gate-api", as("reader"))); l["app"] != "gate-api" || l["op"] != "whoami" {
		t.Errorf("the line is %v", l)
	}
}

// One batch: each right once, and none again while the answers are remembered.
func TestCapabilitiesAreOneBatchOfReviewsAboutTheCaller(t *testing.T) {
	mark, err := gw.APIServer.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	capable(t, "sky-marshall", as("operator"))
	events, err := gw.APIServer.Audit(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	var specs []string
	for _, e := range events {
		if e.Resource != "subjectaccessreviews" {
			continue
		}
		spec := string(e.Object)
		for _, want := range []string{`"user":"` + username(t, "operator") + `"`, `"uid":`, `"extra":`, `"namespace":"app-sky-marshall-cicd"`} {
			if !strings.Contains(spec, want) {
				t.Errorf("the review lacks %s: %s", want, spec)
			}
		}
		specs = append(specs, spec)
	}
	rights := map[string]bool{}
	for _, op := range api.Operations() {
		if op.Scope != api.ScopeSelf {
			rights[op.Verb+" "+op.Resource+"/"+op.Subresource] = true
		}
	}
	slices.Sort(specs)
	if n := len(slices.Compact(specs)); n != len(rights) || len(specs) != n {
		t.Errorf("%d reviews, %d different ones, of %d rights", len(specs), n, len(rights))
	}
}

func TestCapabilitiesFailWithTheAPIServer(t *testing.T) {
	ok(t, get(t, "/v1/whoami", as("releaser"))) // the token is known
	gw.Faults.Set(faultproxy.Fault{Method: http.MethodPost, Path: "/apis/authorization.k8s.io/v1/subjectaccessreviews", Status: http.StatusInternalServerError})
	t.Cleanup(gw.Faults.Clear)
	refused(t, get(t, "/v1/whoami?app=hangar-web", as("releaser")), 502, "GP-API-502")
	ok(t, get(t, "/v1/whoami", as("releaser")))
}
