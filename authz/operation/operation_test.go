package operation_test

import (
	"errors"
	"strings"
	"testing"

	"hangar.io/glidepath/api"
	"hangar.io/glidepath/authz/authn"
	"hangar.io/glidepath/authz/operation"
	"hangar.io/glidepath/internal/problem"
)

func table(t testing.TB) *operation.Table {
	t.Helper()
	tab, err := operation.NewTable(api.Operations())
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestEveryOperationOfTheContractCanBeDecided(t *testing.T) {
	tab := table(t)
	for _, op := range api.Operations() {
		o, ok := tab.Lookup(op.ID)
		if !ok || o.ID != op.ID {
			t.Fatalf("%s is not in the table", op.ID)
		}
		want := authn.ForWrite
		if op.Tier == api.TierRead {
			want = authn.ForRead
		}
		if o.Purpose != want {
			t.Errorf("%s: purpose %v", op.ID, o.Purpose)
		}
	}
	for _, id := range []string{"", operation.Unmatched, "ListRuns", "listruns", "listRuns "} {
		if _, ok := tab.Lookup(id); ok {
			t.Errorf("%q is in the table", id)
		}
	}
}

// valid gives a value for every name in a path, by hand.
var valid = map[string]string{
	"app": "gate-api", "result": "4f0c7d1e-2b6a-4c39-9d5e-8a1f3b2c7e90", "taskRun": "build-unit.1", "id": "669fd9a8C5",
	"container": "step-test", "chainId": "chain-1", "name": "ci-0.build", "env": "prod",
}

func fill(path string, with map[string]string) string {
	for name, value := range with {
		path = strings.ReplaceAll(path, "{"+name+"}", value)
	}
	return path
}

func TestTheNamesInAPathAreReadWithTheContractsPatterns(t *testing.T) {
	bad := []string{"", ".", "..", "a b", "a%20b", "a/b", "a;x", "a,b", "a_b", "ä", "a\x00", "a\n", "-a", "a-", strings.Repeat("a", 129)}
	upper := func(name string) bool { return name != "id" }
	tab := table(t)
	for _, op := range api.Operations() {
		o, _ := tab.Lookup(op.ID)
		good := fill(op.Path, valid)
		target, err := o.Parse(op.Method, good)
		if err != nil || target.Malformed != nil {
			t.Errorf("%s: %s: %v %v", op.ID, good, err, target.Malformed)
		}
		if wantApp := strings.Contains(op.Path, "{app}"); wantApp != (target.App == "gate-api") {
			t.Errorf("%s: app %q", op.ID, target.App)
		}
		for _, p := range op.PathParams {
			values := bad
			if upper(p.Name) {
				values = append(values, "Gate")
			}
			values = append(values, strings.Repeat("a", p.MaxLength+1))
			for _, value := range values {
				with := map[string]string{}
				for k, v := range valid {
					with[k] = v
				}
				with[p.Name] = value
				target, err := o.Parse(op.Method, fill(op.Path, with))
				refused := target.Malformed != nil && target.Malformed.Rule.ID == problem.BadRequest.ID
				if !refused && !errors.Is(err, operation.ErrMismatch) {
					t.Errorf("%s: %s=%q was taken: %+v", op.ID, p.Name, value, target)
				}
				if p.Name == "app" && target.App != "" {
					t.Errorf("%s: app %q came of %q", op.ID, target.App, value)
				}
			}
		}
	}
}

func TestARequestThatIsNotOfItsRoutesOperation(t *testing.T) {
	tab := table(t)
	for name, tc := range map[string]struct{ op, method, target string }{
		"another method":              {"listLive", "POST", "/v1/apps/x/live"},
		"a method in lower case":      {"listLive", "get", "/v1/apps/x/live"},
		"another operation's path":    {"listLive", "GET", "/v1/apps/x/runs"},
		"a segment more":              {"listLive", "GET", "/v1/apps/x/live/stream"},
		"a segment less":              {"listLive", "GET", "/v1/apps/x"},
		"a slash at the end":          {"listLive", "GET", "/v1/apps/x/live/"},
		"two slashes":                 {"listLive", "GET", "/v1/apps//x/live"},
		"no slash at the start":       {"listLive", "GET", "v1/apps/x/live"},
		"an absolute URL":             {"listLive", "GET", "http://h/v1/apps/x/live"},
		"a literal in another case":   {"listLive", "GET", "/V1/apps/x/live"},
		"a dot segment":               {"listLive", "GET", "/v1/apps/x/./live"},
		"an encoded slash in a name":  {"listLive", "GET", "/v1/apps/x/live%2f"},
		"a fragment after the path":   {"listLive", "GET", "/v1/apps/x/live#x"},
		"nothing":                     {"listLive", "", ""},
		"the star of OPTIONS":         {"listLive", "GET", "*"},
		"a query in place of a path":  {"whoami", "GET", "?/v1/whoami"},
		"a path that is one in query": {"listLiveRuns", "GET", "/v1?/live"},
	} {
		t.Run(name, func(t *testing.T) {
			o, _ := tab.Lookup(tc.op)
			if target, err := o.Parse(tc.method, tc.target); !errors.Is(err, operation.ErrMismatch) {
				t.Errorf("got %+v, %v", target, err)
			}
		})
	}
}

// rule: R392
func TestTheAppOfAFleetOperation(t *testing.T) {
	tab := table(t)
	for name, tc := range map[string]struct {
		query     string
		app       string
		malformed bool
	}{
		"no query":                             {"", "", false},
		"an empty query":                       {"?", "", false},
		"one app":                              {"?app=gate-api", "gate-api", false},
		"one app among others":                 {"?limit=5&app=gate-api&continue=x%3D", "gate-api", false},
		"an encoded app, as backends read it":  {"?app=gate%2Dapi", "gate-api", false},
		"an encoded name, as backends read it": {"?%61pp=gate-api", "gate-api", false},
		"other parameters only":                {"?limit=5&apps=x&App=x&xapp=y", "", false},
		"an empty app":                         {"?app=", "", true},
		"an app without a value":               {"?app", "", true},
		"an app sent twice":                    {"?app=a&app=a", "", true},
		"two apps":                             {"?app=a&app=b", "", true},
		"two apps, one by another spelling":    {"?app=a&%61pp=b", "", true},
		"an empty app and an app":              {"?app=&app=b", "", true},
		"an app in upper case":                 {"?app=Gate", "", true},
		"an app with a space":                  {"?app=a+b", "", true},
		"an app with a line break":             {"?app=a%0a", "", true},
		"an app that ends in NUL":              {"?app=a%00", "", true},
		"a semicolon":                          {"?app=a;app=b", "", true},
		"a broken escape":                      {"?x=%zz", "", true},
		"a letter that is not ASCII":           {"?x=ä", "", true},
		"a second question mark":               {"?app=a?app=b", "", true},
		"a fragment":                           {"?app=a#", "", true},
		"54 characters":                        {"?app=" + strings.Repeat("a", 54), strings.Repeat("a", 54), false},
		"55 characters":                        {"?app=" + strings.Repeat("a", 55), "", true},
		"more than a query may hold":           {"?x=" + strings.Repeat("a", operation.MaxTargetBytes), "", true},
	} {
		t.Run(name, func(t *testing.T) {
			for _, op := range api.Operations() {
				if op.Scope != api.ScopeFleet {
					continue
				}
				o, _ := tab.Lookup(op.ID)
				got, err := o.Parse(op.Method, op.Path+tc.query)
				if err != nil {
					t.Fatalf("%s: %v", op.ID, err)
				}
				if got.App != tc.app && !tc.malformed {
					t.Errorf("%s: app %q, want %q", op.ID, got.App, tc.app)
				}
				if (got.Malformed != nil) != tc.malformed {
					t.Errorf("%s: malformed %v, want %v", op.ID, got.Malformed, tc.malformed)
				}
			}
		})
	}
}

func TestTheQueryOfAnAppOperationNamesNoApp(t *testing.T) {
	o, _ := table(t).Lookup("listLive")
	got, err := o.Parse("GET", "/v1/apps/mine/live?app=other&namespace=kube-system")
	if err != nil || got.Malformed != nil || got.App != "mine" {
		t.Errorf("got %+v, %v", got, err)
	}
}

func TestAnOperationThatLacksWhatADecisionNeedsIsRefused(t *testing.T) {
	app := api.Param{Name: "app", In: "path", Pattern: "^[a-z]+$", MaxLength: 54, Required: true}
	sound := api.Operation{
		ID: "x", Method: "GET", Path: "/v1/apps/{app}/x", Tier: "T0", Backend: "b", Scope: "app", Verb: "list", Resource: "runs",
		PathParams: []api.Param{app},
	}
	if _, err := operation.NewTable([]api.Operation{sound}); err != nil {
		t.Fatalf("a sound operation: %v", err)
	}
	for name, breakIt := range map[string]func(*api.Operation){
		"no name":                             func(o *api.Operation) { o.ID = "" },
		"the name of routes without one":      func(o *api.Operation) { o.ID = operation.Unmatched },
		"no method":                           func(o *api.Operation) { o.Method = "" },
		"no backend":                          func(o *api.Operation) { o.Backend = "" },
		"no path":                             func(o *api.Operation) { o.Path = "" },
		"no tier":                             func(o *api.Operation) { o.Tier = "" },
		"an unknown tier":                     func(o *api.Operation) { o.Tier = "T3" },
		"a write of the reads' tier":          func(o *api.Operation) { o.Write = true },
		"no scope":                            func(o *api.Operation) { o.Scope = "" },
		"no verb":                             func(o *api.Operation) { o.Verb = "" },
		"no resource":                         func(o *api.Operation) { o.Resource = "" },
		"a right that nobody is asked for":    func(o *api.Operation) { o.Scope = "self" },
		"a write that needs no right":         func(o *api.Operation) { o.Scope, o.Verb, o.Resource, o.Tier = "self", "", "", "T1" },
		"a parameter that is not described":   func(o *api.Operation) { o.PathParams = nil },
		"a pattern that is not anchored":      func(o *api.Operation) { o.PathParams = []api.Param{{Name: "app", Pattern: "[a-z]+", MaxLength: 5}} },
		"a pattern that is none":              func(o *api.Operation) { o.PathParams = []api.Param{{Name: "app", Pattern: "^[$", MaxLength: 5}} },
		"a name without a bound":              func(o *api.Operation) { o.PathParams = []api.Param{{Name: "app", Pattern: "^[a-z]+$"}} },
		"an app operation without an app":     func(o *api.Operation) { o.Path, o.PathParams = "/v1/x", nil },
		"a fleet operation without its app=":  func(o *api.Operation) { o.Path, o.PathParams, o.Scope = "/v1/x", nil, "fleet" },
		"a path that does not start with a /": func(o *api.Operation) { o.Path = "v1/apps/{app}/x" },
	} {
		t.Run(name, func(t *testing.T) {
			op := sound
			breakIt(&op)
			if _, err := operation.NewTable([]api.Operation{op}); err == nil {
				t.Error("it was taken")
			}
		})
	}
	_, err := operation.NewTable([]api.Operation{sound, sound, {ID: "y"}})
	if err == nil || !strings.Contains(err.Error(), "twice") || !strings.Contains(err.Error(), `"y"`) {
		t.Errorf("not all faults are told: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	tab := table(f)
	ops := api.Operations()
	for i, op := range ops {
		f.Add(i, op.Method, fill(op.Path, valid))
		f.Add(i, op.Method, fill(op.Path, valid)+"?app=gate-api&app=%61")
		f.Add(i, op.Method, op.Path)
	}
	f.Fuzz(func(t *testing.T, n int, method, target string) {
		if n < 0 || n >= len(ops) {
			return
		}
		op := ops[n]
		o, _ := tab.Lookup(op.ID)
		got, err := o.Parse(method, target)
		if err != nil {
			return
		}
		if method != op.Method {
			t.Errorf("%s: taken with %s", op.ID, method)
		}
		if got.App != "" && (len(got.App) > 54 || strings.Trim(got.App, "abcdefghijklmnopqrstuvwxyz0123456789-") != "") {
			t.Errorf("%s: app %q of %q", op.ID, got.App, target)
		}
		if got.Malformed != nil {
			return
		}
		path, _, _ := strings.Cut(target, "?")
		if strings.ContainsAny(target, "\x00\r\n\t #") || strings.ContainsAny(path, "%;\\_") || strings.Contains(path, "//") || strings.Contains(path, "..") {
			t.Errorf("%s: %q was taken", op.ID, target)
		}
		if op.Scope == api.ScopeApp && !strings.HasPrefix(path, "/v1/apps/"+got.App+"/") {
			t.Errorf("%s: app %q is not the one in %q", op.ID, got.App, path)
		}
	})
}
