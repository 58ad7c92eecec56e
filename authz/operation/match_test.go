package operation_test

import (
	"testing"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/internal/problem"
)

func TestEveryOperationsTargetIsACallOfIt(t *testing.T) {
	tab := table(t)
	for _, op := range tab.All() {
		app := "shop"
		if op.ID == "getContract" {
			app = ""
		}
		target, err := op.Target(app, nil)
		if err != nil {
			t.Errorf("%s: %v", op.ID, err)
			continue
		}
		found, err := tab.Match(op.Method, target)
		if err != nil || found != op {
			t.Errorf("%s: %s is a call of %v, %v", op.ID, target, found, err)
			continue
		}
		if parsed, err := op.Parse(op.Method, target); err != nil || parsed.App != app || parsed.Malformed != nil {
			t.Errorf("%s: %s is read as %+v, %v", op.ID, target, parsed, err)
		}
	}
}

func TestATargetTakesWhatItIsGiven(t *testing.T) {
	tab := table(t)
	for name, tc := range map[string]struct {
		op, app string
		values  map[string]string
		want    string // "" wants an error
	}{
		"a name in the path":         {"cancelPipelineRun", "shop", map[string]string{"name": "ci-1"}, "/v1/apps/shop/pipelineruns/ci-1/cancel"},
		"the app by its name":        {"listRuns", "", map[string]string{"app": "shop"}, "/v1/apps/shop/runs"},
		"the fleet":                  {"listLiveRuns", "", nil, "/v1/live"},
		"one app of the fleet":       {"listLiveRuns", "shop", nil, "/v1/live?app=shop"},
		"what is no name is escaped": {"listRuns", "a/b", nil, "/v1/apps/a%2Fb/runs"},
		"no app":                     {"listRuns", "", nil, ""},
		"a name that it has not":     {"listRuns", "shop", map[string]string{"name": "x"}, ""},
		"an app about none":          {"getContract", "shop", nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			op, _ := tab.Lookup(tc.op)
			got, err := op.Target(tc.app, tc.values)
			if got != tc.want || (err == nil) != (tc.want != "") {
				t.Errorf("got %q, %v", got, err)
			}
		})
	}
}

func TestWhatIsNoOperationsIsRefusedAsTheEdgeDoes(t *testing.T) {
	tab := table(t)
	for call, rule := range map[[2]string]string{
		{"GET", "/v2/apps"}:           "GP-EDGE-404",
		{"GET", "/v1/apps/shop"}:      "GP-EDGE-404",
		{"POST", "/v1/whoami"}:        "GP-EDGE-405",
		{"DELETE", "/v1/apps/a/runs"}: "GP-EDGE-405",
		{"get", "/v1/whoami"}:         "GP-EDGE-405",
		{"GET", ""}:                   "GP-EDGE-404",
	} {
		op, err := tab.Match(call[0], call[1])
		if op != nil || problem.From(err).Rule.ID != rule {
			t.Errorf("%v: %v, %v", call, op, err)
		}
	}
	if got := len(tab.All()); got != len(api.Operations()) {
		t.Errorf("%d operations", got)
	}
}
