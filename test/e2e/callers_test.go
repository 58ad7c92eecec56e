package e2e_test

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"hangar.io/glidepath/api"
)

// calls gives a request for each of the 30 operations on the app gate-api, by
// hand.
var calls = map[string]string{
	"whoami":              "/v1/whoami",
	"getContract":         "/v1/contract",
	"listRuns":            "/v1/apps/gate-api/runs",
	"getRun":              "/v1/apps/gate-api/runs/4f0c7d1e-2b6a-4c39-9d5e-8a1f3b2c7e90",
	"getRunLogs":          "/v1/apps/gate-api/runs/4f0c7d1e-2b6a-4c39-9d5e-8a1f3b2c7e90/logs/build-unit",
	"explainRun":          "/v1/apps/gate-api/runs/4f0c7d1e-2b6a-4c39-9d5e-8a1f3b2c7e90/explain",
	"listFleetRuns":       "/v1/runs",
	"listTests":           "/v1/apps/gate-api/tests",
	"getTestReport":       "/v1/apps/gate-api/tests/669fd9a8c5d2f0a1b2c3d4e5/report",
	"listLive":            "/v1/apps/gate-api/live",
	"getLiveLogs":         "/v1/apps/gate-api/live/taskruns/build-unit/logs/step-test",
	"streamLiveRuns":      "/v1/apps/gate-api/live/stream",
	"listLiveRuns":        "/v1/live",
	"listLiveTaskRuns":    "/v1/live/taskruns",
	"listFleetReleases":   "/v1/releases",
	"listReleaseEvents":   "/v1/releases/events",
	"listReleases":        "/v1/apps/gate-api/releases",
	"getRelease":          "/v1/apps/gate-api/releases/7200a685-1c1e-4c39-9d5e-8a1f3b2c7e90",
	"getReleaseRun":       "/v1/apps/gate-api/releases/runs/promote-prod-abc1234-0a1b2c",
	"listEnvironments":    "/v1/apps/gate-api/environments",
	"getRollbackPlan":     "/v1/apps/gate-api/environments/prod/rollback-plan?cluster=hangar-prod",
	"listPreviews":        "/v1/apps/gate-api/previews",
	"getEvidence":         "/v1/apps/gate-api/evidence?image=ghcr.io/o/gate-api:1.0.0",
	"rerunPipelineRun":    "/v1/apps/gate-api/pipelineruns/ci-1/rerun",
	"cancelPipelineRun":   "/v1/apps/gate-api/pipelineruns/ci-1/cancel",
	"promoteEnvironment":  "/v1/apps/gate-api/environments/staging/promote",
	"rollbackEnvironment": "/v1/apps/gate-api/environments/prod/rollback",
	"validateCicd":        "/v1/apps/gate-api/cicd/validations",
	"streamEvents":        "/v1/events",
	"listRecentEvents":    "/v1/events/recent",
}

// forged gives a real token whose signature is another's.
func forged(t *testing.T) string {
	t.Helper()
	mine, other := strings.Split(tokens["reader"], "."), strings.Split(tokens["stranger"], ".")
	return strings.Join([]string{mine[0], mine[1], other[2]}, ".")
}

// rule: R053, R005, R071
func TestWhoamiNamesTheCallerAsTheClusterDoes(t *testing.T) {
	mark, err := gw.APIServer.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	a := ok(t, get(t, "/v1/whoami", as("stranger")))
	var who struct {
		Username, Kind, OnBehalfOf string
		Groups, Audiences          []string
		Delegate                   *bool
	}
	a.decode(t, &who)
	if who.Username != username(t, "stranger") || who.Kind != "serviceAccount" || who.Delegate != nil {
		t.Errorf("got %+v", who)
	}
	if !slices.Contains(who.Groups, "system:serviceaccounts") || len(who.Audiences) == 0 {
		t.Errorf("got %+v", who)
	}
	events, err := gw.APIServer.Audit(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range events {
		if e.Resource == "subjectaccessreviews" {
			t.Errorf("whoami caused a SubjectAccessReview: %s", e.Object)
		}
	}
	a = ok(t, get(t, "/v1/whoami", as("delegate"), onBehalfOf("user:default/ana")))
	a.decode(t, &who)
	if who.Delegate == nil || !*who.Delegate || who.OnBehalfOf != "user:default/ana" {
		t.Errorf("got %+v", who)
	}
}

// rule: R006
func TestTheContractIsTheBuiltFileByteForByte(t *testing.T) {
	a := ok(t, get(t, "/v1/contract", as("stranger")))
	if string(a.body) != string(api.Contract()) {
		t.Error("the served contract is not the built file")
	}
}

// rule: R054
func TestTheTokenMayComeInTheProxysHeader(t *testing.T) {
	ok(t, get(t, "/v1/whoami", header("X-Glidepath-Authorization", "Bearer "+tokens["reader"])))
	// The header of the service proxy is the one that counts.
	a := ok(t, get(t, "/v1/whoami", as("stranger"), header("X-Glidepath-Authorization", "Bearer "+tokens["reader"])))
	if !strings.Contains(string(a.body), username(t, "reader")) {
		t.Errorf("got %s", a.body)
	}
	refused(t, get(t, "/v1/whoami", as("reader"), header("X-Glidepath-Authorization", "Bearer nonsense")), 401, "GP-AUTH-002")
}

// rule: R077, R266
func TestARightInOneAppIsARightInThatAppAlone(t *testing.T) {
	for path, status := range map[string]int{
		"/v1/apps/gate-api/live": 200,
		"/v1/live?app=gate-api":  200,
		"/v1/apps/shop/live":     403,
		"/v1/live?app=shop":      403,
		"/v1/live":               403,
		"/v1/live/taskruns":      403,
		"/v1/live/taskruns?app=gate-api&pipelineRuns=x": 200,
	} {
		a := get(t, path, as("app-reader"))
		if a.status != status {
			t.Errorf("%s: got %d, want %d", path, a.status, status)
		}
	}
	if b := get(t, "/v1/live", as("app-reader")).problem(t); !strings.Contains(b.Hint, "app=") {
		t.Errorf("the refusal of a fleet read does not say that app= would help: %+v", b)
	}
}

// rule: R079, R080
func TestAStrangerCannotTellWhichAppsExist(t *testing.T) {
	real, madeUp := get(t, "/v1/apps/gate-api/live", as("stranger")), get(t, "/v1/apps/made-upp/live", as("stranger"))
	refused(t, real, 403, "GP-AUTHZ-001")
	refused(t, madeUp, 403, "GP-AUTHZ-001")
	same := func(a answer, app string) string {
		return strings.NewReplacer(app, "APP", a.traceID(), "TRACE").Replace(string(a.body))
	}
	if r, m := same(real, "gate-api"), same(madeUp, "made-upp"); r != m {
		t.Errorf("the bodies differ:\n%s\n%s", r, m)
	}
	for name := range real.header {
		if name != "Date" && name != "X-Glidepath-Trace-Id" && name != "Content-Length" && real.header.Get(name) != madeUp.header.Get(name) {
			t.Errorf("%s differs: %q, %q", name, real.header.Get(name), madeUp.header.Get(name))
		}
	}
	refused(t, get(t, "/v1/apps/made-upp/live", as("reader")), 404, "GP-API-404")
	refused(t, get(t, "/v1/live?app=made-upp", as("reader")), 404, "GP-API-404")
	refused(t, get(t, "/v1/apps/made-upp/live", as("app-reader")), 403, "GP-AUTHZ-001")
}

// rule: R073
func TestAnInfraServiceIsAnAppToo(t *testing.T) {
	a := ok(t, get(t, "/v1/apps/postgres/live", as("reader")))
	if !strings.Contains(string(a.body), `"infra-postgres-cicd"`) {
		t.Errorf("got %.300s", a.body)
	}
}

// rule: R392
func TestMalformedAppNamesAreRefusedOnEveryWay(t *testing.T) {
	for _, name := range []string{
		"Gate-API", "gate_api", "-gate", "gate-", "gate.api", ".", strings.Repeat("a", 55), "a;x", "a+b", "a~b", "ä", "a,b",
	} {
		query := url.QueryEscape(name)
		for _, path := range []string{"/v1/apps/" + name + "/live", "/v1/live?app=" + query, "/v1/live/taskruns?app=" + query} {
			if strings.HasSuffix(path, "/./live") || strings.Contains(path, "/ä/") {
				continue // normalized, or refused as percent-encoded, before there is a name
			}
			a := get(t, path, as("reader"))
			if a.status != http.StatusBadRequest || a.problem(t).Rule != "GP-API-400" {
				t.Errorf("%s: got %d %.200s", path, a.status, a.body)
			}
		}
	}
	for _, path := range []string{"/v1/live?app=", "/v1/live?app=shop&app=shop", "/v1/live?app=shop&app=gate-api"} {
		refused(t, get(t, path, as("reader")), 400, "GP-API-400")
	}
	// 54 characters are an app's name, though of none that exists.
	refused(t, get(t, "/v1/apps/"+strings.Repeat("a", 54)+"/live", as("reader")), 404, "GP-API-404")
}

// rule: R082
func TestTheReviewIsAlwaysAboutTheCaller(t *testing.T) {
	mark, err := gw.APIServer.AuditMark(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	call(t, http.MethodPost, gw.URL+calls["cancelPipelineRun"], as("delegate"), onBehalfOf("user:default/ana"))
	events, err := gw.APIServer.Audit(t.Context(), mark)
	if err != nil {
		t.Fatal(err)
	}
	reviews := 0
	for _, e := range events {
		if e.Resource != "subjectaccessreviews" {
			continue
		}
		reviews++
		spec := string(e.Object)
		if !strings.Contains(spec, `"user":"`+username(t, "delegate")+`"`) || strings.Contains(spec, "ana") {
			t.Errorf("the review is about someone else: %s", spec)
		}
		for _, want := range []string{`"verb":"cancel"`, `"resource":"runs"`, `"group":"glidepath.hangar.io"`, `"namespace":"app-gate-api-cicd"`, `"system:serviceaccounts"`, `"uid":`, `"extra":`} {
			if !strings.Contains(spec, want) {
				t.Errorf("the review lacks %s: %s", want, spec)
			}
		}
	}
	if reviews != 1 {
		t.Errorf("%d reviews, want 1", reviews)
	}
}
