package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"hangar.io/glidepath/authz/explain"
)

// tokenFile gives a file that holds a token as people write one.
func tokenFile(t *testing.T, token string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(file, []byte(token+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// explained asks the real API server and reads the answer as JSON. No output
// may hold the token.
func explained(t *testing.T, token string, args ...string) explain.Report {
	t.Helper()
	args = append([]string{"explain", "--kubeconfig=" + cluster.Kubeconfig}, args...)
	var report explain.Report
	for _, form := range []string{"text", "review", "yaml", "json"} {
		out, err := run(t, append(args, "-o", form)...)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			for part := range strings.SplitSeq(token, ".") {
				if strings.Contains(out, part) {
					t.Fatalf("the token shows: %s", out)
				}
			}
		}
		if form == "json" {
			if err := json.Unmarshal([]byte(out), &report); err != nil {
				t.Fatalf("%v: %s", err, out)
			}
		}
	}
	return report
}

func TestExplainShowsThePathOfADecision(t *testing.T) {
	reader, token := caller(t, "app-reader")
	r := explained(t, token, "get", "/v1/apps/gate-api/runs?limit=1", "--token-file="+tokenFile(t, token))
	if r.Call.Operation != "listRuns" || r.Call.Tier != "T0" || r.Call.Planned {
		t.Errorf("call: %+v", r.Call)
	}
	if c := explained(t, token, "get", "/v1/apps/gate-api/releases").Call; c.Operation != "listReleases" || !c.Planned {
		t.Errorf("a call of an operation that has no route yet: %+v", c)
	}
	if r.Token.Header != "authorization" || r.Token.Issuer == "" || r.Token.Expires == "" || r.Token.VerifiedBy != "TokenReview" {
		t.Errorf("token: %+v", r.Token)
	}
	if c := r.Caller; c.Username != reader || c.Kind != "serviceAccount" || c.UID == "" || !slices.Contains(c.Groups, "system:serviceaccounts") || len(c.Extra) == 0 || len(c.Audiences) == 0 {
		t.Errorf("caller: %+v", c)
	}
	if r.App.Name != "gate-api" || len(r.App.Namespaces) != 1 || r.App.Namespaces[0].Name != "app-gate-api-cicd" || r.App.Namespaces[0].UID == "" {
		t.Errorf("app: %+v", r.App)
	}
	if len(r.Reviews) != 1 || !r.Reviews[0].Allowed || r.Reviews[0].RememberedSeconds != 10 ||
		!strings.Contains(r.Reviews[0].Reason, `RoleBinding "glidepath-api-readers/app-gate-api-cicd"`) {
		t.Errorf("reviews: %+v", r.Reviews)
	}
	if !r.Answer.Allowed || r.Answer.Rule != "" {
		t.Errorf("answer: %+v", r.Answer)
	}
}

// What explain prints is what kubectl sends: the API server answers it as it
// answered authz.
func TestTheReviewsReplayVerbatim(t *testing.T) {
	_, token := caller(t, "operator")
	for _, tc := range []struct {
		op   string
		want bool
	}{{"cancelPipelineRun", true}, {"listRuns", false}} {
		out, err := run(t, "explain", tc.op, "--app=shop", "--kubeconfig="+cluster.Kubeconfig, "--token-file="+tokenFile(t, token), "-o", "review")
		if err != nil {
			t.Fatal(err)
		}
		var review authorizationv1.SubjectAccessReview
		if err := yaml.UnmarshalStrict([]byte(out), &review); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		answer, err := cluster.Client.AuthorizationV1().SubjectAccessReviews().Create(t.Context(), &review, metav1.CreateOptions{FieldValidation: "Strict"})
		if err != nil || answer.Status.Allowed != tc.want || review.Spec.UID == "" {
			t.Errorf("%s: %v, %+v", tc.op, err, answer)
		}
	}
}

func TestExplainSaysWhyACallIsRefused(t *testing.T) {
	_, stranger := caller(t, "stranger")
	_, reader := caller(t, "reader")
	delegate, delegated := caller(t, "delegate")
	t.Setenv("GLIDEPATH_TEST_TOKEN", reader)
	strange := "--token-file=" + tokenFile(t, stranger)
	for name, tc := range map[string]struct {
		args    []string
		rule    string
		reviews int
		seconds int
	}{
		"no token":                {[]string{"listRuns", "--app=shop"}, "GP-AUTH-001", 0, 0},
		"a token that is none":    {[]string{"whoami", "--token-file=" + tokenFile(t, "nonsense")}, "GP-AUTH-002", 0, 0},
		"two tokens in a file":    {[]string{"whoami", "--token-file=" + tokenFile(t, "a b")}, "GP-AUTH-002", 0, 0},
		"no right":                {[]string{"listRuns", "--app=shop", strange}, "GP-AUTHZ-001", 1, 5},
		"no right to a write":     {[]string{"cancelPipelineRun", "--app=shop", strange}, "GP-AUTHZ-001", 1, 0},
		"no right, by its header": {[]string{"listRuns", "--app=shop", strange, "--proxied"}, "GP-AUTHZ-001", 1, 5},
		"no app":                  {[]string{"listRuns", "--app=none", "--token-env=GLIDEPATH_TEST_TOKEN"}, "GP-API-404", 1, 10},
		"no name":                 {[]string{"GET", "/v1/apps/X_/runs", strange}, "GP-API-400", 0, 0},
		"no operation":            {[]string{"GET", "/v1/nothing", strange}, "GP-EDGE-404", 0, 0},
		"no such method":          {[]string{"DELETE", "/v1/whoami", strange}, "GP-EDGE-405", 0, 0},
		"a person, by nobody":     {[]string{"whoami", strange, "--on-behalf-of=ana"}, "GP-AUTH-003", 0, 0},
		"no person": {
			[]string{"cancelPipelineRun", "--app=shop", "--token-file=" + tokenFile(t, delegated), "--delegates=" + delegate},
			"GP-AUTH-004", 0, 0,
		},
		"another audience": {[]string{"whoami", strange, "--token-audiences=elsewhere"}, "GP-AUTH-002", 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := explained(t, "", tc.args...)
			if r.Answer.Allowed || r.Answer.Rule != tc.rule || r.Answer.Status == 0 || r.Answer.Message == "" {
				t.Errorf("answer: %+v", r.Answer)
			}
			if len(r.Reviews) != tc.reviews || (tc.reviews > 0 && r.Reviews[0].RememberedSeconds != tc.seconds) {
				t.Errorf("reviews: %+v", r.Reviews)
			}
		})
	}
}

func TestExplainTakesACallerInManyWays(t *testing.T) {
	operator, token := caller(t, "operator")
	t.Setenv("GLIDEPATH_TEST_TOKEN", token)
	account := strings.Replace(strings.TrimPrefix(operator, "system:serviceaccount:"), ":", "/", 1)
	for name, tc := range map[string]struct {
		args     []string
		username string
		kind     string
	}{
		"an environment variable":       {[]string{"--token-env=GLIDEPATH_TEST_TOKEN"}, operator, "serviceAccount"},
		"a new token of an account":     {[]string{"--service-account=" + account}, operator, "serviceAccount"},
		"an assumed account":            {[]string{"--as=" + operator}, operator, "serviceAccount"},
		"an assumed user of a group":    {[]string{"--as=root", "--as-group=system:masters"}, "root", "user"},
		"an assumed person, by a group": {[]string{"--as=people:octocat", "--as-group=system:masters"}, "people:octocat", "person"},
	} {
		t.Run(name, func(t *testing.T) {
			r := explained(t, token, append(tc.args, "cancelPipelineRun", "--app=shop", "--param=name=ci-1")...)
			if r.Caller.Username != tc.username || r.Caller.Kind != tc.kind || !r.Answer.Allowed || r.Call.Target != "/v1/apps/shop/pipelineruns/ci-1/cancel" {
				t.Errorf("got %+v", r)
			}
		})
	}
	var c explainCommand
	c.stdin, c.TokenFile = strings.NewReader(token), "-"
	credential, err := c.credential(t.Context(), nil)
	if err != nil || credential.Source != "of standard input" {
		t.Errorf("standard input: %v, %v", credential, err)
	}
}

func TestExplainCannotBeAskedWhatMakesNoSense(t *testing.T) {
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"an operation that is none":      {[]string{"listDogs"}, `"listDogs" is no operation`},
		"an operation without its app":   {[]string{"listRuns"}, "is about one app"},
		"a path with an app beside":      {[]string{"GET", "/v1/whoami", "--app=shop"}, "--app and --param go with"},
		"too much":                       {[]string{"GET", "/v1/whoami", "x"}, "one call at a time"},
		"two callers":                    {[]string{"whoami", "--as=x", "--token-file=y"}, "can't be used together"},
		"a group of nobody":              {[]string{"whoami", "--as-group=x"}, "go with --as"},
		"a file that is not there":       {[]string{"whoami", "--token-file=/nonexistent"}, "reading the token"},
		"a variable that is not there":   {[]string{"whoami", "--token-env=GLIDEPATH_NONE"}, "is not set"},
		"an account that is no name":     {[]string{"whoami", "--service-account=x"}, "not namespace/name"},
		"an account that is not there":   {[]string{"whoami", "--service-account=x/y"}, "not found"},
		"nobody at all":                  {[]string{"whoami", "--as=system:anonymous"}, "no caller can be"},
		"a kubeconfig that is not there": {[]string{"whoami", "--kubeconfig=/nonexistent"}, "configuring"},
	} {
		t.Run(name, func(t *testing.T) {
			if _, err := run(t, append([]string{"explain", "--kubeconfig=" + cluster.Kubeconfig}, tc.args...)...); err == nil || !strings.Contains(err.Error(), tc.want) {
				t.Errorf("got %v, want %q in it", err, tc.want)
			}
		})
	}
}

// An API server that gives no answer is what authz would meet too, and is said
// with its cause; one that cannot even be reached is an error.
func TestExplainWithoutTheAPIServer(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/namespaces") && r.URL.Query().Get("watch") == "" {
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(`{"kind":"PartialObjectMetadataList","apiVersion":"meta.k8s.io/v1","metadata":{"resourceVersion":"1"},"items":[]}`))
			return
		}
		w.WriteHeader(http.StatusInternalServerError)
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"` + server.URL + `"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":""}}],"current-context":"c"}`
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	out, err := run(t, "explain", "listRuns", "--app=shop", "--as=somebody", "--kubeconfig="+kubeconfig)
	if err != nil || !strings.Contains(out, "GP-API-502") || !strings.Contains(out, "500 Internal Server Error") || !strings.Contains(out, "no answer") {
		t.Errorf("got %s, %v", out, err)
	}
	server.Close()
	if _, err := run(t, "explain", "listRuns", "--app=shop", "--as=somebody", "--kubeconfig="+kubeconfig); err == nil || !strings.Contains(err.Error(), "reading namespaces") {
		t.Errorf("got %v", err)
	}
}

func TestExplainPrintsForPeople(t *testing.T) {
	_, token := caller(t, "operator")
	var out bytes.Buffer
	c := explainCommand{
		Call: []string{"listRuns"}, App: "shop", TokenFile: tokenFile(t, token), Kubeconfig: cluster.Kubeconfig, Output: "text", Timeout: time.Minute,
	}
	if err := c.Run(&kong.Kong{Stdout: &out}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"call        GET /v1/apps/shop/runs", "listRuns, T0, about one app, answered by runs", "            verified   by TokenReview\n", "system:serviceaccount:glidepath-demo:operator (serviceAccount)",
		"app         shop: app-shop-cicd (uid ", "review 1    refused", "no binding grants it", "5 s at most", "kind: SubjectAccessReview", "answer      403 GP-AUTHZ-001",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("the text lacks %q:\n%s", want, out.String())
		}
	}
	out.Reset()
	c.Call = []string{"cancelPipelineRun"}
	if err := c.Run(&kong.Kong{Stdout: &out}); err != nil || !strings.Contains(out.String(), "\nanswer      allowed, and GP-EDGE-404 until a gateway serves it\n") {
		t.Errorf("a planned operation: %v\n%s", err, out.String())
	}
}
