package decision_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/decision"
	"hangar.io/glidepath/authz/namespaces"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/authz/review"
	"hangar.io/glidepath/authz/token"
	"hangar.io/glidepath/internal/problem"
)

// world is a cluster as the decision sees it. It writes down what it is asked.
type world struct {
	t       testing.TB
	ops     *operation.Table
	callers map[string]*authn.Caller // by token
	rights  map[review.Right]bool
	found   map[string]namespaces.Resolution // by app

	mu       sync.Mutex // a batch of reviews is made concurrently
	asked    []review.Right
	purposes []authn.Purpose
	resolved []string
	broken   string // which part has no answer
}

func newWorld(t testing.TB) *world {
	t.Helper()
	ops, err := operation.NewTable(api.Operations())
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, ops: ops, callers: map[string]*authn.Caller{}, rights: map[review.Right]bool{}, found: map[string]namespaces.Resolution{}}
	for _, name := range []string{"reader", "tower"} {
		c, err := authn.NewClusterCaller(authn.Facts{Username: name, UID: "uid-" + name, Groups: []string{"g"}})
		if err != nil {
			t.Fatal(err)
		}
		w.callers[name+"-token"] = c
	}
	w.callers["person-token"] = &authn.Caller{Facts: authn.Facts{Username: "people:octocat"}, Kind: authn.Person}
	w.found["gate-api"] = namespaces.Resolution{Namespace: ns("app-gate-api-cicd")}
	w.found["postgres"] = namespaces.Resolution{Namespace: ns("infra-postgres-cicd")}
	w.found["both"] = namespaces.Resolution{Namespace: ns("app-both-cicd"), Other: ns("infra-both-cicd")}
	return w
}

func ns(name string) namespaces.Namespace {
	return namespaces.Namespace{Name: name, UID: "uid-of-" + name}
}

func (w *world) Authenticate(_ context.Context, t token.Token, p authn.Purpose) (*authn.Caller, error) {
	w.purposes = append(w.purposes, p)
	switch {
	case w.broken == "tokens":
		return nil, problem.New(problem.SourceFailed, "the token could not be reviewed")
	case w.broken == "nobody":
		return nil, nil
	}
	if c, ok := w.callers[t.Secret()]; ok {
		return c, nil
	}
	return nil, problem.New(problem.AuthBadToken, "")
}

func (w *world) Allowed(ctx context.Context, c *authn.Caller, r review.Right, p authn.Purpose) (bool, error) {
	w.mu.Lock()
	w.asked, w.purposes = append(w.asked, r), append(w.purposes, p)
	w.mu.Unlock()
	switch w.broken {
	case "access":
		return false, problem.New(problem.SourceFailed, "access could not be reviewed")
	case "access by surprise":
		return true, errors.New("unexpected")
	case "slow":
		<-ctx.Done()
		return false, ctx.Err()
	}
	if c == nil || c.Username == "" {
		w.t.Error("a review about nobody")
	}
	everywhere := r
	everywhere.Namespace = ""
	return w.rights[r] || w.rights[everywhere], nil
}

func (w *world) Resolve(app string) (namespaces.Resolution, error) {
	w.mu.Lock()
	w.resolved = append(w.resolved, app)
	w.mu.Unlock()
	if w.broken == "namespaces" {
		return namespaces.Resolution{}, namespaces.ErrNotSynced
	}
	if r, ok := w.found[app]; ok {
		return r, nil
	}
	return namespaces.Resolution{Namespace: namespaces.Namespace{Name: "app-" + app + "-cicd"}}, nil
}

func (w *world) grant(verb, resource, namespace string) {
	resource, sub, _ := strings.Cut(resource, "/")
	w.rights[review.Right{Verb: verb, Group: "glidepath.hangar.io", Resource: resource, Subresource: sub, Namespace: namespace}] = true
}

type header map[string]string

func (h header) Get(name string) (string, int) {
	v, ok := h[name]
	if !ok {
		return "", 0
	}
	return v, 1
}

func bearer(token string, more ...string) header {
	h := header{"authorization": "Bearer " + token}
	for i := 0; i < len(more); i += 2 {
		h[more[i]] = more[i+1]
	}
	return h
}

const onBehalfOf = decision.OnBehalfOfHeader

func (w *world) decide(op, target string, h header) decision.Decision {
	w.t.Helper()
	o, ok := w.ops.Lookup(op)
	if !ok {
		w.t.Fatalf("no operation %q", op)
	}
	d := decision.New(decision.Config{
		Authenticator: w, Access: w, Namespaces: w, Delegates: []string{"tower", "people:octocat"},
	})
	return d.Decide(w.t.Context(), decision.Request{Operation: o, Method: o.Method, Target: target, Headers: h})
}

func rule(d decision.Decision) string {
	if d.Refusal == nil {
		return ""
	}
	return d.Refusal.Rule.ID
}

// The order of the answers: each of these calls is wrong in every way that
// comes after the one it is refused for.
//
// rule: R079, R081, R123, R124, R266, R388, R389, R391
func TestTheOrderOfAnswers(t *testing.T) {
	for name, tc := range map[string]struct {
		op, target string
		headers    header
		rule       string
	}{
		"no token before the person":            {"rerunPipelineRun", "/v1/apps/X_/pipelineruns/_/rerun", header{onBehalfOf: "ana,bob"}, "GP-AUTH-001"},
		"a bad token before the person":         {"rerunPipelineRun", "/v1/apps/X_/pipelineruns/_/rerun", bearer("bad", onBehalfOf, "ana"), "GP-AUTH-002"},
		"the person before names":               {"rerunPipelineRun", "/v1/apps/X_/pipelineruns/_/rerun", bearer("reader-token", onBehalfOf, "ana"), "GP-AUTH-003"},
		"a person is never a delegate":          {"listLive", "/v1/apps/X_/live", bearer("person-token", onBehalfOf, "ana"), "GP-AUTH-003"},
		"the missing person before names":       {"rerunPipelineRun", "/v1/apps/X_/pipelineruns/_/rerun", bearer("tower-token"), "GP-AUTH-004"},
		"names before the right":                {"rerunPipelineRun", "/v1/apps/missing/pipelineruns/_/rerun", bearer("reader-token"), "GP-API-400"},
		"the app's name before the right":       {"listLive", "/v1/apps/X_/live", bearer("reader-token"), "GP-API-400"},
		"app= before the right":                 {"listLiveRuns", "/v1/live?app=", bearer("reader-token"), "GP-API-400"},
		"the right before there is such an app": {"listLive", "/v1/apps/missing/live", bearer("reader-token"), "GP-AUTHZ-001"},
		"the right before the name is two":      {"listLive", "/v1/apps/both/live", bearer("reader-token"), "GP-AUTHZ-001"},
		"the right, fleet-wide":                 {"listLiveRuns", "/v1/live", bearer("reader-token"), "GP-AUTHZ-001"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newWorld(t).decide(tc.op, tc.target, tc.headers)
			if rule(d) != tc.rule || d.Allowed() {
				t.Errorf("got %q, want %q", rule(d), tc.rule)
			}
		})
	}
}

func TestAnAllowedCallIsKnownInFull(t *testing.T) {
	for name, tc := range map[string]struct {
		op, target, namespace, app string
		grant                      [3]string
		headers                    header
		person                     string
	}{
		"an app":                       {"listLive", "/v1/apps/gate-api/live", "app-gate-api-cicd", "gate-api", [3]string{"list", "runs", "app-gate-api-cicd"}, bearer("reader-token"), ""},
		"an InfraService":              {"listLive", "/v1/apps/postgres/live", "infra-postgres-cicd", "postgres", [3]string{"list", "runs", "infra-postgres-cicd"}, bearer("reader-token"), ""},
		"an app by a right everywhere": {"listLive", "/v1/apps/gate-api/live", "app-gate-api-cicd", "gate-api", [3]string{"list", "runs", ""}, bearer("reader-token"), ""},
		"the fleet":                    {"listLiveRuns", "/v1/live", "", "", [3]string{"list", "runs", ""}, bearer("reader-token"), ""},
		"the fleet's part of one app":  {"listLiveRuns", "/v1/live?limit=1&app=gate-api", "app-gate-api-cicd", "gate-api", [3]string{"list", "runs", "app-gate-api-cicd"}, bearer("reader-token"), ""},
		"nothing but a token":          {"whoami", "/v1/whoami", "", "", [3]string{"x", "x", "x"}, bearer("reader-token"), ""},
		"a delegate's read for nobody": {"listLive", "/v1/apps/gate-api/live", "app-gate-api-cicd", "gate-api", [3]string{"list", "runs", ""}, bearer("tower-token"), ""},
		"a delegate's read":            {"listLive", "/v1/apps/gate-api/live", "app-gate-api-cicd", "gate-api", [3]string{"list", "runs", ""}, bearer("tower-token", onBehalfOf, "user:default/ana"), "user:default/ana"},
		"a delegate's write":           {"cancelPipelineRun", "/v1/apps/gate-api/pipelineruns/a/cancel", "app-gate-api-cicd", "gate-api", [3]string{"cancel", "runs", ""}, bearer("tower-token", onBehalfOf, "ana"), "ana"},
		"anyone's write for nobody":    {"cancelPipelineRun", "/v1/apps/gate-api/pipelineruns/a/cancel", "app-gate-api-cicd", "gate-api", [3]string{"cancel", "runs", ""}, bearer("reader-token"), ""},
		"a delegate validates alone":   {"validateCicd", "/v1/apps/gate-api/cicd/validations", "app-gate-api-cicd", "gate-api", [3]string{"validate", "cicd", ""}, bearer("tower-token"), ""},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.grant(tc.grant[0], tc.grant[1], tc.grant[2])
			d := w.decide(tc.op, tc.target, tc.headers)
			if !d.Allowed() {
				t.Fatalf("refused: %v", d.Refusal)
			}
			if d.App != tc.app || d.Namespace.Name != tc.namespace || (d.Namespace.UID != "") != (tc.app != "") || d.OnBehalfOf != tc.person {
				t.Errorf("got %+v", d)
			}
			if d.Caller == nil || d.Delegate != (d.Caller.Username == "tower") || d.Operation.ID != tc.op {
				t.Errorf("got %+v", d)
			}
		})
	}
}

// contractRights is the contract's table once more, by hand.
var contractRights = map[string]string{
	"listRuns": "list runs", "getRun": "get runs", "getRunLogs": "get runs/logs", "explainRun": "get runs/logs", "listFleetRuns": "list runs",
	"listTests": "list tests", "getTestReport": "get tests",
	"listLive": "list runs", "getLiveLogs": "get runs/logs", "streamLiveRuns": "list runs", "listLiveRuns": "list runs", "listLiveTaskRuns": "list runs",
	"listFleetReleases": "list releases", "listReleaseEvents": "list releases", "listReleases": "list releases", "getRelease": "get releases", "getReleaseRun": "get releases",
	"listEnvironments": "list environments", "getRollbackPlan": "get environments", "listPreviews": "list environments",
	"getEvidence":      "get evidence",
	"rerunPipelineRun": "rerun runs", "cancelPipelineRun": "cancel runs", "promoteEnvironment": "promote environments", "rollbackEnvironment": "rollback environments",
	"validateCicd": "validate cicd",
	"streamEvents": "list events", "listRecentEvents": "list events",
	"whoami": "", "getContract": "",
}

var writes = []string{"rerunPipelineRun", "cancelPipelineRun", "promoteEnvironment", "rollbackEnvironment"}

func pathOf(op api.Operation, app string) string {
	return strings.NewReplacer("{app}", app, "{result}", "4f0c7d1e-2b6a-4c39-9d5e-8a1f3b2c7e90", "{taskRun}", "t", "{id}", "i",
		"{container}", "c", "{chainId}", "c", "{name}", "n", "{env}", "e").Replace(op.Path)
}

// rule: R072, R075, R082, R266, R369, R370
func TestTheReviewsOfEveryOperation(t *testing.T) {
	if len(contractRights) != len(api.Operations()) {
		t.Fatalf("%d operations, %d rights", len(api.Operations()), len(contractRights))
	}
	for _, op := range api.Operations() {
		t.Run(op.ID, func(t *testing.T) {
			check := func(target string, h header, namespaces ...string) {
				t.Helper()
				w := newWorld(t)
				w.decide(op.ID, target, h)
				verb, resource, _ := strings.Cut(contractRights[op.ID], " ")
				resource, sub, _ := strings.Cut(resource, "/")
				var want []review.Right
				for _, n := range namespaces {
					want = append(want, review.Right{Verb: verb, Group: "glidepath.hangar.io", Resource: resource, Subresource: sub, Namespace: n})
				}
				if !slices.Equal(w.asked, want) {
					t.Errorf("%s: asked %+v, want %+v", target, w.asked, want)
				}
				purpose := authn.ForRead
				if slices.Contains(writes, op.ID) {
					purpose = authn.ForWrite
				}
				for _, p := range w.purposes {
					if p != purpose {
						t.Errorf("%s: asked with purpose %v", target, p)
					}
				}
			}
			for app, namespace := range map[string]string{"gate-api": "app-gate-api-cicd", "postgres": "infra-postgres-cicd", "missing": "app-missing-cicd", "both": "app-both-cicd"} {
				switch {
				case contractRights[op.ID] == "":
					check(op.Path, bearer("reader-token"))
				case strings.Contains(op.Path, "{app}"):
					check(pathOf(op, app), bearer("reader-token"), namespace)
					check(pathOf(op, app)+"?app=other&namespace=kube-system", bearer("tower-token", onBehalfOf, "ana"), namespace)
				default:
					check(op.Path, bearer("reader-token"), "")
					check(op.Path+"?namespace=kube-system", bearer("reader-token"), "")
					check(op.Path+"?app="+app, bearer("reader-token"), namespace)
				}
			}
		})
	}
}

// rule: R079, R080
func TestTheRefusalSaysTheSameWhateverExists(t *testing.T) {
	for _, op := range []string{"listLive", "getLiveLogs", "cancelPipelineRun", "listLiveRuns"} {
		o, _ := api.Lookup(op)
		path := func(app string) string {
			if o.Scope == api.ScopeFleet {
				return o.Path + "?app=" + app
			}
			return pathOf(o, app)
		}
		var first *problem.Error
		for _, app := range []string{"gate-api", "postgres", "both", "missing"} {
			w := newWorld(t)
			d := w.decide(op, path(app), bearer("reader-token"))
			if rule(d) != "GP-AUTHZ-001" {
				t.Fatalf("%s %s: %v", op, app, d.Refusal)
			}
			same := *d.Refusal
			same.Message, same.Hint = strings.ReplaceAll(same.Message, app, "APP"), strings.ReplaceAll(same.Hint, app, "APP")
			if first == nil {
				first = &same
			} else if same.Message != first.Message || same.Hint != first.Hint || same.Rule != first.Rule {
				t.Errorf("%s: %q %q for %s, %q %q for gate-api", op, same.Message, same.Hint, app, first.Message, first.Hint)
			}
			if !slices.Equal(w.resolved, []string{app}) {
				t.Errorf("%s: looked up %v", app, w.resolved)
			}
		}
	}
}

func TestARefusalNamesTheMissingRight(t *testing.T) {
	for name, tc := range map[string]struct {
		op, target string
		says       []string
	}{
		"of an app":         {"listTests", "/v1/apps/shop/tests", []string{"list", "tests", "-cicd namespace of shop", "glidepath.hangar.io"}},
		"of a subresource":  {"getLiveLogs", "/v1/apps/shop/live/taskruns/t/logs/c", []string{"get", "runs/logs", "shop"}},
		"of the fleet":      {"listLiveRuns", "/v1/live", []string{"list", "runs", "app=", "cluster-wide"}},
		"of a fleet's part": {"streamEvents", "/v1/events?app=shop", []string{"list", "events", "-cicd namespace of shop"}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newWorld(t).decide(tc.op, tc.target, bearer("reader-token"))
			b := d.Refusal.Body("")
			for _, s := range tc.says {
				if !strings.Contains(b.Message+" "+b.Hint, s) {
					t.Errorf("%q is not in %q, %q", s, b.Message, b.Hint)
				}
			}
			if strings.Contains(b.Hint, "app=") != (tc.op == "listLiveRuns") {
				t.Errorf("app= in %q", b.Hint)
			}
		})
	}
}

// rule: R079
func TestAnAppThatIsMissingOrTwo(t *testing.T) {
	for name, tc := range map[string]struct {
		app     string
		granted []string
		rule    string
	}{
		"missing, to who could read it by its namespace": {"missing", []string{"app-missing-cicd"}, "GP-API-404"},
		"missing, to who may read all":                   {"missing", []string{""}, "GP-API-404"},
		"missing, to who could read an InfraService":     {"missing", []string{"infra-missing-cicd"}, "GP-AUTHZ-001"},
		"two, to who may read both":                      {"both", []string{"app-both-cicd", "infra-both-cicd"}, "GP-API-409"},
		"two, to who may read all":                       {"both", []string{""}, "GP-API-409"},
		"two, to who may read the app":                   {"both", []string{"app-both-cicd"}, "GP-AUTHZ-001"},
		"two, to who may read the InfraService":          {"both", []string{"infra-both-cicd"}, "GP-AUTHZ-001"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, target := range []string{"/v1/apps/" + tc.app + "/live", "/v1/live?app=" + tc.app} {
				w := newWorld(t)
				for _, n := range tc.granted {
					w.grant("list", "runs", n)
				}
				op := "listLive"
				if strings.Contains(target, "?") {
					op = "listLiveRuns"
				}
				d := w.decide(op, target, bearer("reader-token"))
				if rule(d) != tc.rule || d.Allowed() || d.Namespace.Name != "" {
					t.Errorf("%s: got %v", target, d.Refusal)
				}
				message := d.Refusal.Body("").Message
				for _, n := range []string{"app-both-cicd", "infra-both-cicd"} {
					if strings.Contains(message, n) != (tc.rule == "GP-API-409") {
						t.Errorf("%s in %q", n, message)
					}
				}
			}
		})
	}
}

// rule: R081, R123
func TestThePersonThatACallNames(t *testing.T) {
	long := strings.Repeat("a", 256)
	for name, tc := range map[string]struct{ token, value, read, write string }{
		"a delegate's":                      {"tower-token", "user:default/ana", "", ""},
		"a delegate's, with a space":        {"tower-token", "Ana Lee", "", ""},
		"a delegate's, of 256 bytes":        {"tower-token", long, "", ""},
		"a delegate's, empty":               {"tower-token", "", "", "GP-AUTH-004"},
		"a delegate's, of 257 bytes":        {"tower-token", long + "a", "GP-API-400", "GP-API-400"},
		"a delegate's, two joined":          {"tower-token", "ana,bob", "GP-API-400", "GP-API-400"},
		"a delegate's, one and an empty":    {"tower-token", "ana,", "GP-API-400", "GP-API-400"},
		"a delegate's, a line break":        {"tower-token", "a\nb", "GP-API-400", "GP-API-400"},
		"a delegate's, a tab":               {"tower-token", "a\tb", "GP-API-400", "GP-API-400"},
		"a delegate's, a DEL":               {"tower-token", "a\x7f", "GP-API-400", "GP-API-400"},
		"a delegate's, not ASCII":           {"tower-token", "änne", "GP-API-400", "GP-API-400"},
		"a delegate's, spaces around it":    {"tower-token", " ana ", "GP-API-400", "GP-API-400"},
		"a delegate's, nothing but a space": {"tower-token", " ", "GP-API-400", "GP-API-400"},
		"anyone else's":                     {"reader-token", "ana", "GP-AUTH-003", "GP-AUTH-003"},
		"anyone else's, malformed":          {"reader-token", "ana,bob", "GP-AUTH-003", "GP-AUTH-003"},
		"anyone else's, their own name":     {"reader-token", "reader", "GP-AUTH-003", "GP-AUTH-003"},
		"anyone else's, empty":              {"reader-token", "", "", ""},
		"a person's, even one listed":       {"person-token", "ana", "GP-AUTH-003", "GP-AUTH-003"},
		"a person's, empty":                 {"person-token", "", "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			for op, want := range map[string]string{"listLive": tc.read, "cancelPipelineRun": tc.write} {
				w := newWorld(t)
				w.grant("list", "runs", "")
				w.grant("cancel", "runs", "")
				o, _ := api.Lookup(op)
				d := w.decide(op, pathOf(o, "gate-api"), bearer(tc.token, onBehalfOf, tc.value))
				if rule(d) != want || d.Allowed() != (want == "") {
					t.Errorf("%s: got %v, want %q", op, d.Refusal, want)
				}
				accepted := ""
				if want == "" {
					accepted = tc.value
				}
				if d.OnBehalfOf != accepted {
					t.Errorf("%s: on behalf of %q", op, d.OnBehalfOf)
				}
				if want != "" && len(w.asked)+len(w.resolved) > 0 {
					t.Errorf("%s: asked %v, looked up %v before the refusal", op, w.asked, w.resolved)
				}
			}
		})
	}
}

// rule: R123, R390
func TestADelegatesWriteWithoutThePersonReadsNothing(t *testing.T) {
	for _, op := range writes {
		o, _ := api.Lookup(op)
		w := newWorld(t)
		d := w.decide(op, pathOf(o, "gate-api"), bearer("tower-token"))
		if rule(d) != "GP-AUTH-004" || d.Refusal.Status() != 400 {
			t.Errorf("%s: %v", op, d.Refusal)
		}
		if len(w.asked)+len(w.resolved) > 0 {
			t.Errorf("%s: asked %v, looked up %v", op, w.asked, w.resolved)
		}
	}
}

// rule: R402
func TestWhatHasNoAnswerIsNeverAllowed(t *testing.T) {
	for _, broken := range []string{"tokens", "nobody", "access", "access by surprise", "namespaces"} {
		t.Run(broken, func(t *testing.T) {
			for _, op := range []string{"listLive", "cancelPipelineRun", "listLiveRuns"} {
				w := newWorld(t)
				w.grant("list", "runs", "")
				w.grant("cancel", "runs", "")
				w.broken = broken
				o, _ := api.Lookup(op)
				target := pathOf(o, "gate-api")
				if o.Scope == api.ScopeFleet {
					target += "?app=gate-api"
				}
				d := w.decide(op, target, bearer("reader-token"))
				if rule(d) != "GP-API-502" || d.Allowed() {
					t.Errorf("%s: got %v", op, d.Refusal)
				}
			}
		})
	}
}

func TestADecisionIsBounded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		w.broken = "slow"
		began := time.Now()
		d := w.decide("listLive", "/v1/apps/gate-api/live", bearer("reader-token"))
		if rule(d) != "GP-API-502" || time.Since(began) != decision.Timeout {
			t.Errorf("%v after %s", d.Refusal, time.Since(began))
		}
	})
}

func TestARequestThatDoesNotFitItsOperationIsRefusedBeforeItsTokenIsRead(t *testing.T) {
	w := newWorld(t)
	d := w.decide("listLive", "/v1/apps/gate-api/runs", bearer("reader-token"))
	if rule(d) != "GP-API-502" || d.Allowed() || !errors.Is(d.Refusal, operation.ErrMismatch) || len(w.purposes) > 0 {
		t.Errorf("got %v after %d questions", d.Refusal, len(w.purposes))
	}
}

func TestTheZeroDecisionRefuses(t *testing.T) {
	var d decision.Decision
	if d.Allowed() {
		t.Error("it allows")
	}
}
