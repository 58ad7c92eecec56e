package main

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"hangar.io/glidepath/internal/terminal"
)

// evil clears the screen, begins a colour by a control of one byte, and turns
// the direction of writing around.
const evil = "x\x1b[2J\u009b31m\u202ey"

// evilCluster is an API server that answers every question so.
func evilCluster(t *testing.T) (kubeconfig string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer := map[string]any{}
		switch {
		case strings.HasSuffix(r.URL.Path, "/subjectaccessreviews"):
			w.WriteHeader(http.StatusCreated)
			answer["kind"], answer["apiVersion"] = "SubjectAccessReview", "authorization.k8s.io/v1"
			answer["status"] = map[string]any{"allowed": false, "reason": evil, "evaluationError": evil}
		case strings.HasSuffix(r.URL.Path, "/tokenreviews"):
			w.WriteHeader(http.StatusCreated)
			answer["kind"], answer["apiVersion"] = "TokenReview", "authentication.k8s.io/v1"
			answer["status"] = map[string]any{"authenticated": true, "user": map[string]any{
				"username": "zoe" + evil, "uid": evil, "groups": []string{evil}, "extra": map[string][]string{"k" + evil: {evil}},
			}}
		case strings.HasSuffix(r.URL.Path, "/namespaces") && r.URL.Query().Get("watch") == "":
			answer["kind"], answer["apiVersion"] = "PartialObjectMetadataList", "meta.k8s.io/v1"
			answer["metadata"], answer["items"] = map[string]string{"resourceVersion": "1"}, []any{}
		default:
			w.WriteHeader(http.StatusInternalServerError)
			answer["kind"], answer["apiVersion"], answer["status"], answer["message"] = "Status", "v1", "Failure", evil
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	config := `{"apiVersion":"v1","kind":"Config","clusters":[{"name":"c","cluster":{"server":"` + server.URL + `"}}],"contexts":[{"name":"c","context":{"cluster":"c","user":""}}],"current-context":"c"}`
	if err := os.WriteFile(kubeconfig, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}

// evilToken is one whose claims, which nobody has verified, are so.
func evilToken(t *testing.T) string {
	t.Helper()
	claims, err := json.Marshal(map[string]any{"iss": evil, "exp": 32503680000})
	if err != nil {
		t.Fatal(err)
	}
	text := base64.RawURLEncoding.EncodeToString
	return text([]byte(`{"alg":"RS256"}`)) + "." + text(claims) + ".c2ln"
}

// Words of others reach the operator's terminal, and do nothing there.
func TestNothingThatOthersSayActsOnTheTerminal(t *testing.T) {
	kubeconfig := evilCluster(t)
	live := []string{"--live", "--kubeconfig=" + kubeconfig}
	const line = `{"msg":"audit","op":"listRuns","app":"shop","decision":"allow","time":"2026-01-01T00:00:00Z","caller":"`
	for name, tc := range map[string]struct {
		args []string
		want string // of the words, in their harmless form
	}{
		"explain: a reason of the API server": {[]string{"explain", "listRuns", "--app=shop", "--as=zoe", "--kubeconfig=" + kubeconfig}, `because    "x\x1b[2J\u009b31m\u202ey"`},
		"explain: a token and its user":       {[]string{"explain", "listRuns", "--app=shop", "--token-file=" + tokenFile(t, evilToken(t)), "--kubeconfig=" + kubeconfig}, `issuer     "x\x1b[2J`},
		"explain: an assumed user":            {[]string{"explain", "listRuns", "--app=shop", "--as=" + evil, "--kubeconfig=" + kubeconfig}, `no caller can be "x\x1b[2J`},
		"explain: a person and a target":      {[]string{"explain", "GET", "/v1/" + evil, "--as=zoe", "--on-behalf-of=" + evil, "--kubeconfig=" + kubeconfig}, `"/v1/x\x1b[2J`},
		"explain: a reason of the deny-list":  {[]string{"explain", "whoami", "--as=zoe", "--deny-list=" + listFile(t, `users: [{name: zoe, reason: "x\e[2J"}]`), "--kubeconfig=" + kubeconfig}, `reason     "x\x1b[2J"`},
		"replay: a line that none wrote":      {append([]string{"replay", write(t, "lines", line+"zoe\"}\n"+line+`x\u001b[2J"}`)}, live...), "a character that the edge does not write"},
		"replay: an input's name":             {append([]string{"replay", write(t, "x\x1b[2J", line+"zoe\"}\n?\n")}, live...), `x\x1b[2J:2"`},
		"replay: a manifest":                  {[]string{"replay", write(t, "lines", line+"zoe\"}"), "--manifests=" + write(t, "x\x1b[2J.yaml", "kind: ? "+evil+"\n")}, `x\x1b[2J.yaml`},
	} {
		t.Run(name, func(t *testing.T) {
			forms := []string{"text", "json", "yaml", "review"}
			if tc.args[0] == "replay" {
				forms = forms[:2]
			}
			for _, form := range forms {
				out, err := run(t, append(tc.args, "-o", form)...)
				if err != nil {
					out += err.Error()
				}
				if got := terminal.Lines(out); got != out {
					t.Errorf("%s acts on the terminal: %q", form, out)
				}
				if form == "text" && !strings.Contains(out, tc.want) {
					t.Errorf("the text lacks %s: %s", tc.want, out)
				}
			}
		})
	}
}
