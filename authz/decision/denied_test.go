package decision_test

import (
	"testing"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/internal/problem"
)

// denied is a list of user names and people.
type denied map[string]bool

func (d denied) Check(c *authn.Caller, person string) error {
	if d[c.Username] || d[person] {
		return problem.New(problem.AuthDenied, "")
	}
	return nil
}

func TestWhoIsDeniedByListIsToldAfterTheTokenAndThePersonAndBeforeAllElse(t *testing.T) {
	long := "/v1/apps/UPPER/live"
	for name, tc := range map[string]struct {
		op, target string
		headers    header
		rule       string
	}{
		"a denied caller":                          {"listLive", "/v1/apps/gate-api/live", bearer("reader-token"), "GP-AUTH-006"},
		"a denied caller without the right":        {"listTests", "/v1/apps/gate-api/tests", bearer("reader-token"), "GP-AUTH-006"},
		"a denied caller about no app":             {"listLive", "/v1/apps/none/live", bearer("reader-token"), "GP-AUTH-006"},
		"a denied caller with a malformed name":    {"listLive", long, bearer("reader-token"), "GP-AUTH-006"},
		"a denied caller who asks who they are":    {"whoami", "/v1/whoami", bearer("reader-token"), "GP-AUTH-006"},
		"a denied caller's write":                  {"cancelPipelineRun", "/v1/apps/gate-api/pipelineruns/a/cancel", bearer("reader-token"), "GP-AUTH-006"},
		"a denied caller who names a person":       {"listLive", "/v1/apps/gate-api/live", bearer("reader-token", onBehalfOf, "ana"), "GP-AUTH-003"},
		"a bad token":                              {"listLive", "/v1/apps/gate-api/live", bearer("bad"), "GP-AUTH-002"},
		"a delegate for a denied person":           {"listLive", "/v1/apps/gate-api/live", bearer("tower-token", onBehalfOf, "ana"), "GP-AUTH-006"},
		"a delegate's write for a denied person":   {"cancelPipelineRun", "/v1/apps/gate-api/pipelineruns/a/cancel", bearer("tower-token", onBehalfOf, "ana"), "GP-AUTH-006"},
		"a delegate's write without the person":    {"cancelPipelineRun", "/v1/apps/gate-api/pipelineruns/a/cancel", bearer("tower-token"), "GP-AUTH-004"},
		"a delegate for somebody else":             {"listLive", "/v1/apps/gate-api/live", bearer("tower-token", onBehalfOf, "bob"), ""},
		"somebody else with a malformed name":      {"listLive", long, bearer("tower-token"), "GP-API-400"},
		"somebody else, who may do what they want": {"listLive", "/v1/apps/gate-api/live", bearer("tower-token"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.grant("list", "runs", "")
			w.grant("cancel", "runs", "")
			op, _ := w.ops.Lookup(tc.op)
			d := decision.New(decision.Config{
				Authenticator: w, Access: w, Namespaces: w, Delegates: []string{"tower"}, DenyList: denied{"reader": true, "ana": true},
			}).Decide(t.Context(), decision.Request{Operation: op, Method: op.Method, Target: tc.target, Headers: tc.headers})
			if got := rule(d); got != tc.rule || d.Allowed() != (tc.rule == "") {
				t.Errorf("got %q, want %q", got, tc.rule)
			}
			if tc.rule == "GP-AUTH-006" && len(w.asked)+len(w.resolved) > 0 {
				t.Errorf("asked %v, looked up %v for who is denied", w.asked, w.resolved)
			}
		})
	}
}

func TestEveryOperationIsDenied(t *testing.T) {
	for _, op := range api.Operations() {
		w := newWorld(t)
		o, _ := w.ops.Lookup(op.ID)
		d := decision.New(decision.Config{Authenticator: w, Access: w, Namespaces: w, DenyList: denied{"reader": true}}).
			Decide(t.Context(), decision.Request{Operation: o, Method: op.Method, Target: pathOf(op, "gate-api"), Headers: bearer("reader-token")})
		if rule(d) != "GP-AUTH-006" || d.Refusal.Status() != 403 || d.Caller == nil {
			t.Errorf("%s: %v", op.ID, d.Refusal)
		}
	}
}
