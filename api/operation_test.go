package api_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"hangar.io/glidepath/api"
)

// operation is a line of the operations' table as people write it: the right is
// "verb resource", or "-" where an accepted token is enough.
type operation struct {
	id, call, tier, right, scope, backend string
}

// theOperations is written by hand and not derived from anything, so that a
// slip in openapi.yaml cannot move what is routed and who may call it.
func theOperations() []operation {
	return []operation{
		{"whoami", "GET /v1/whoami", "T0", "-", "self", "authz"},
		{"getContract", "GET /v1/contract", "T0", "-", "self", "authz"},
		{"listRuns", "GET /v1/apps/{app}/runs", "T0", "list runs", "app", "runs"},
		{"getRun", "GET /v1/apps/{app}/runs/{result}", "T0", "get runs", "app", "runs"},
		{"getRunLogs", "GET /v1/apps/{app}/runs/{result}/logs/{taskRun}", "T0", "get runs/logs", "app", "runs"},
		{"explainRun", "GET /v1/apps/{app}/runs/{result}/explain", "T0", "get runs/logs", "app", "runs"},
		{"listFleetRuns", "GET /v1/runs", "T0", "list runs", "fleet", "runs"},
		{"listTests", "GET /v1/apps/{app}/tests", "T0", "list tests", "app", "runs"},
		{"getTestReport", "GET /v1/apps/{app}/tests/{id}/report", "T0", "get tests", "app", "runs"},
		{"listLive", "GET /v1/apps/{app}/live", "T0", "list runs", "app", "livehub"},
		{"getLiveLogs", "GET /v1/apps/{app}/live/taskruns/{taskRun}/logs/{container}", "T0", "get runs/logs", "app", "livehub"},
		{"streamLiveRuns", "GET /v1/apps/{app}/live/stream", "T0", "list runs", "app", "livehub"},
		{"listLiveRuns", "GET /v1/live", "T0", "list runs", "fleet", "livehub"},
		{"listLiveTaskRuns", "GET /v1/live/taskruns", "T0", "list runs", "fleet", "livehub"},
		{"listFleetReleases", "GET /v1/releases", "T0", "list releases", "fleet", "releases"},
		{"listReleaseEvents", "GET /v1/releases/events", "T0", "list releases", "fleet", "releases"},
		{"listReleases", "GET /v1/apps/{app}/releases", "T0", "list releases", "app", "releases"},
		{"getRelease", "GET /v1/apps/{app}/releases/{chainId}", "T0", "get releases", "app", "releases"},
		{"getReleaseRun", "GET /v1/apps/{app}/releases/runs/{name}", "T0", "get releases", "app", "releases"},
		{"listEnvironments", "GET /v1/apps/{app}/environments", "T0", "list environments", "app", "releases"},
		{"getRollbackPlan", "GET /v1/apps/{app}/environments/{env}/rollback-plan", "T0", "get environments", "app", "releases"},
		{"listPreviews", "GET /v1/apps/{app}/previews", "T0", "list environments", "app", "releases"},
		{"getEvidence", "GET /v1/apps/{app}/evidence", "T0", "get evidence", "app", "evidence"},
		{"rerunPipelineRun", "POST /v1/apps/{app}/pipelineruns/{name}/rerun", "T1", "rerun runs", "app", "writes"},
		{"cancelPipelineRun", "POST /v1/apps/{app}/pipelineruns/{name}/cancel", "T1", "cancel runs", "app", "writes"},
		{"promoteEnvironment", "POST /v1/apps/{app}/environments/{env}/promote", "T2", "promote environments", "app", "writes"},
		{"rollbackEnvironment", "POST /v1/apps/{app}/environments/{env}/rollback", "T2", "rollback environments", "app", "writes"},
		{"validateCicd", "POST /v1/apps/{app}/cicd/validations", "T0", "validate cicd", "app", "writes"},
		{"streamEvents", "GET /v1/events", "T0", "list events", "fleet", "events"},
		{"listRecentEvents", "GET /v1/events/recent", "T0", "list events", "fleet", "events"},
	}
}

// plannedOperations have no backend yet. The list only shrinks: an operation
// leaves it with the change that serves it, and none comes back or is added.
func plannedOperations() []string {
	return []string{
		"listFleetReleases", "listReleaseEvents", "listReleases", "getRelease", "getReleaseRun",
		"listEnvironments", "getRollbackPlan", "listPreviews",
		"getEvidence",
		"rerunPipelineRun", "cancelPipelineRun", "promoteEnvironment", "rollbackEnvironment", "validateCicd",
		"streamEvents", "listRecentEvents",
	}
}

func TestTheOperationsAreTheThirtyOfTheDesign(t *testing.T) {
	t.Parallel()
	var got []operation
	for _, op := range api.Operations() {
		right := op.Verb + " " + op.Resource
		if op.Subresource != "" {
			right += "/" + op.Subresource
		}
		if op.Scope == api.ScopeSelf && right == " " {
			right = "-"
		}
		got = append(got, operation{
			op.ID, op.Method + " " + op.Path, string(op.Tier), right, string(op.Scope), op.Backend,
		})
	}
	if len(got) != 30 {
		t.Errorf("there are %d operations, not 30", len(got))
	}
	if diff := cmp.Diff(theOperations(), got, cmp.AllowUnexported(operation{})); diff != "" {
		t.Errorf("openapi.yaml differs from the table of this test (-want +got):\n%s", diff)
	}
}

func TestThePlannedOperationsAreTheListedOnes(t *testing.T) {
	t.Parallel()
	if diff := cmp.Diff(plannedOperations(), idsWhere(func(op api.Operation) bool { return op.Planned })); diff != "" {
		t.Errorf("planned operations (-want +got):\n%s", diff)
	}
}

func TestTheSwitchesOfThePolicies(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		is   func(api.Operation) bool
		want []string
	}{
		"four operations change something": {
			func(op api.Operation) bool { return op.Write },
			[]string{"rerunPipelineRun", "cancelPipelineRun", "promoteEnvironment", "rollbackEnvironment"},
		},
		"three operations stay open": {
			func(op api.Operation) bool { return op.Stream },
			[]string{"getLiveLogs", "streamLiveRuns", "streamEvents"},
		},
		"archived runs and live lists are cached": {
			func(op api.Operation) bool { return op.Cached },
			[]string{
				"listRuns", "getRun", "getRunLogs", "explainRun", "listFleetRuns",
				"listLive", "listLiveRuns", "listLiveTaskRuns",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(test.want, idsWhere(test.is)); diff != "" {
				t.Errorf("operations (-want +got):\n%s", diff)
			}
		})
	}
}

func TestLookup(t *testing.T) {
	t.Parallel()
	for _, want := range api.Operations() {
		got, ok := api.Lookup(want.ID)
		if !ok || !cmp.Equal(want, got) {
			t.Errorf("Lookup(%q) = %+v, %v", want.ID, got, ok)
		}
	}
	for _, id := range []string{"", "_unmatched", "listlive", "whoami "} {
		if op, ok := api.Lookup(id); ok || !cmp.Equal(op, api.Operation{}) {
			t.Errorf("Lookup(%q) = %+v, %v: found", id, op, ok)
		}
	}
}

func TestWhatIsHandedOutBelongsToTheCaller(t *testing.T) {
	t.Parallel()
	api.Operations()[2].PathParams[0].Pattern = ""
	found, _ := api.Lookup("listRuns")
	found.PathParams[0].Pattern = ""
	clear(api.Contract())
	clear(api.OpenAPI())

	if op, _ := api.Lookup("listRuns"); op.PathParams[0].Pattern == "" {
		t.Error("a caller could take away a pattern that others rely on")
	}
	if api.Contract()[0] != '{' || api.OpenAPI()[0] != '#' {
		t.Error("a caller could overwrite an embedded file")
	}
}

func TestTheVariablesOfAPathAreItsParameters(t *testing.T) {
	t.Parallel()
	for _, op := range api.Operations() {
		var variables []string
		for segment := range strings.SplitSeq(op.Path, "/") {
			if !strings.ContainsAny(segment, "{}") {
				continue
			}
			name := strings.TrimSuffix(strings.TrimPrefix(segment, "{"), "}")
			if segment != "{"+name+"}" {
				t.Errorf("%s: segment %q is not one whole variable", op.ID, segment)
			}
			// Envoy's uri_template takes no longer names.
			if len(name) > 20 {
				t.Errorf("%s: variable %q is longer than 20 characters", op.ID, name)
			}
			variables = append(variables, name)
		}
		var params []string
		for _, p := range op.PathParams {
			if !p.Required {
				t.Errorf("%s: path parameter %s is optional", op.ID, p.Name)
			}
			params = append(params, p.Name)
		}
		if !slices.Equal(variables, params) {
			t.Errorf("%s: the path has %q and the parameters are %q", op.ID, variables, params)
		}
		if op.Scope == api.ScopeApp && (len(params) == 0 || params[0] != "app") {
			t.Errorf("%s: an operation about an app has no app in its path", op.ID)
		}
	}
}

// TestNoTwoPathsMatchOneCall keeps the order of routes from mattering.
func TestNoTwoPathsMatchOneCall(t *testing.T) {
	t.Parallel()
	operations := api.Operations()
	for i, a := range operations {
		for _, b := range operations[i+1:] {
			if a.Method == b.Method && overlap(a.Path, b.Path) {
				t.Errorf("%s %s and %s %s match the same calls", a.ID, a.Path, b.ID, b.Path)
			}
		}
	}
}

func overlap(a, b string) bool {
	as, bs := strings.Split(a, "/"), strings.Split(b, "/")
	if len(as) != len(bs) {
		return false
	}
	for i := range as {
		if as[i] != bs[i] && !strings.HasPrefix(as[i], "{") && !strings.HasPrefix(bs[i], "{") {
			return false
		}
	}
	return true
}

func TestParametersAreWhereTheirListSays(t *testing.T) {
	t.Parallel()
	for _, op := range api.Operations() {
		for place, params := range map[string][]api.Param{
			"path": op.PathParams, "query": op.QueryParams, "header": op.HeaderParams,
		} {
			for _, p := range params {
				if p.In != place || p.Name == "" {
					t.Errorf("%s: %+v is among the %s parameters", op.ID, p, place)
				}
			}
		}
	}
}

func TestFleetReadsAndWhoamiTakeAnAppAndEveryCallTheNameOfAPerson(t *testing.T) {
	t.Parallel()
	named := func(name string) func(api.Param) bool {
		return func(p api.Param) bool { return p.Name == name }
	}
	for _, op := range api.Operations() {
		want := op.Scope == api.ScopeFleet || op.ID == "whoami"
		if got := slices.ContainsFunc(op.QueryParams, named("app")); got != want {
			t.Errorf("%s: has the query parameter app: %v, want %v", op.ID, got, want)
		}
		if !slices.ContainsFunc(op.HeaderParams, named("X-Glidepath-On-Behalf-Of")) {
			t.Errorf("%s: does not say that a delegate may name a person", op.ID)
		}
	}
}

func TestPatternsAreAnchoredAndBounded(t *testing.T) {
	t.Parallel()
	for _, op := range api.Operations() {
		for _, p := range slices.Concat(op.PathParams, op.QueryParams, op.HeaderParams) {
			if p.Pattern == "" {
				if p.In == "path" {
					t.Errorf("%s: path parameter %s has no pattern", op.ID, p.Name)
				}
				continue
			}
			if _, err := regexp.Compile(p.Pattern); err != nil {
				t.Errorf("%s: %s: %v", op.ID, p.Name, err)
			}
			if !strings.HasPrefix(p.Pattern, "^") || !strings.HasSuffix(p.Pattern, "$") {
				t.Errorf("%s: %s: pattern %s is not anchored", op.ID, p.Name, p.Pattern)
			}
			if p.MaxLength == 0 {
				t.Errorf("%s: %s has a pattern and no greatest length", op.ID, p.Name)
			}
		}
	}
}

func idsWhere(is func(api.Operation) bool) []string {
	var ids []string
	for _, op := range api.Operations() {
		if is(op) {
			ids = append(ids, op.ID)
		}
	}
	return ids
}
