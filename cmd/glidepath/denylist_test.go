package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"hangar.io/glidepath/authz/explain"
)

// listFile gives a file of a deny-list.
func listFile(t *testing.T, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "deny.yaml")
	if err := os.WriteFile(file, []byte("version: \"1\"\n"+content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestDenyListCheckEndsWithACodeForEachCase(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		file, want string
		code       int
	}{
		"a good list":         {listFile(t, "users: [a, b]\npeople: [{name: ana, reason: laptop}]\n"), "3 entries, epoch ", 0},
		"an entry that ended": {listFile(t, "users: [a, {name: b, until: 2020-01-01T00:00:00Z}]\n"), "2 entries, 1 of them ended, epoch ", 0},
		"one entry":           {listFile(t, "users: [{name: a, until: 2999-01-01T00:00:00Z}]\n"), "1 entry, epoch ", 0},
		"a list of nobody":    {listFile(t, ""), "0 entries", 0},
		"a fault":             {listFile(t, "users: [a, \"b*\"]\n"), "deny.yaml:2:12: ", 1},
		"one fault of two":    {listFile(t, "dogs: []\nusers: a\n"), "deny.yaml:2:1: ", 1},
		"the other":           {listFile(t, "dogs: []\nusers: a\n"), "deny.yaml:3:8: ", 1},
		"an empty file":       {policyFile(t, ""), ":1:1: empty", 1},
		"no YAML":             {listFile(t, "users: [\n"), "not YAML", 1},
		"a key that hides":    {listFile(t, "\"\\x1b[2K\": []\n"), "deny.yaml:2:1: ", 1},
		"a file that is none": {filepath.Join(t.TempDir(), "none"), "no such file", 2},
		"a folder":            {t.TempDir(), "not a regular file", 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			out, err := run(t, "denylist", "check", tc.file)
			code := 0
			var coder kong.ExitCoder
			if errors.As(err, &coder) {
				code = coder.ExitCode()
			}
			if err != nil {
				out += err.Error()
			}
			if code != tc.code || (err != nil) != (tc.code != 0) || !strings.Contains(out, tc.want) || strings.Contains(out, "\x1b") {
				t.Errorf("code %d, %q; want %d, %q", code, out, tc.code, tc.want)
			}
		})
	}
}

func TestExplainKnowsTheDenyList(t *testing.T) {
	reader, token := caller(t, "reader")
	delegate, delegated := caller(t, "delegate")
	namespace := strings.Split(reader, ":")[2]
	file := "--token-file=" + tokenFile(t, token)
	forAna := []string{"--token-file=" + tokenFile(t, delegated), "--delegates=" + delegate, "--on-behalf-of=Ana"}
	for name, tc := range map[string]struct {
		list string
		args []string
		want *explain.Denied // nil where nobody is denied
	}{
		"the caller":             {"users: [{name: \"" + reader + "\", reason: ticket 7, until: 2999-01-01T00:00:00Z}]", []string{file}, &explain.Denied{Kind: "user", Name: reader, Reason: "ticket 7", Until: "2999-01-01T00:00:00Z"}},
		"an entry that ended":    {"users: [{name: \"" + reader + "\", until: 2020-01-01T00:00:00Z}]", []string{file}, nil},
		"a group of the caller":  {"groups: [\"system:serviceaccounts:" + namespace + "\"]", []string{file}, &explain.Denied{Kind: "group", Name: "system:serviceaccounts:" + namespace}},
		"the person":             {"people: [ana]", forAna, &explain.Denied{Kind: "person", Name: "ana"}},
		"the delegate":           {"users: [\"" + delegate + "\"]", forAna, &explain.Denied{Kind: "user", Name: delegate}},
		"another person":         {"people: [bob]", forAna, nil},
		"an assumed person":      {"people: [ana]", []string{"--as=people:ana"}, &explain.Denied{Kind: "person", Name: "ana"}},
		"a user of another name": {"users: [somebody]", []string{file}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			list := listFile(t, tc.list)
			r := explained(t, "", append([]string{"whoami", "--deny-list=" + list}, tc.args...)...)
			if r.DenyList == nil || r.DenyList.File != list || r.DenyList.Entries != 1 {
				t.Fatalf("the step is %+v", r.DenyList)
			}
			switch d := r.DenyList.Denied; {
			case tc.want == nil:
				if d != nil || !r.Answer.Allowed {
					t.Errorf("denied by %+v, answer %+v", d, r.Answer)
				}
			case d == nil || *d != *tc.want || r.Answer.Allowed || r.Answer.Status != 403 || r.Answer.Rule != "GP-AUTH-006" || r.App != nil || len(r.Reviews) > 0:
				t.Errorf("denied by %+v, the report is %+v", d, r)
			case tc.want.Reason != "" && strings.Contains(r.Answer.Message+r.Answer.Hint, tc.want.Reason):
				t.Errorf("the caller is told the reason: %+v", r.Answer)
			}
		})
	}
}

func TestExplainSaysTheStepOfTheDenyListToPeople(t *testing.T) {
	explain := func(args ...string) string {
		out, err := run(t, append([]string{"explain", "listRuns", "--app=shop", "--kubeconfig=" + cluster.Kubeconfig, "--as=zoe"}, args...)...)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	for want, out := range map[string]string{
		"deny-list   none is given, so nobody is denied\n":     explain(),
		": neither the caller nor the person is denied (":      explain("--deny-list=" + listFile(t, "users: [ana]\n")),
		": denied as the user zoe\n            reason     why": explain("--deny-list=" + listFile(t, "users: [{name: zoe, reason: why}]\n")),
	} {
		if !strings.Contains(out, want) {
			t.Errorf("the text lacks %q:\n%s", want, out)
		}
	}
	if out := explain("--deny-list=" + listFile(t, "users: [zoe]\n")); strings.Contains(out, "\napp ") || !strings.Contains(out, "answer      403 GP-AUTH-006") || !strings.Contains(out, "is denied by list\n") {
		t.Errorf("got %s", out)
	}
	// Nobody was asked about.
	out, err := run(t, "explain", "listRuns", "--app=shop", "--kubeconfig="+cluster.Kubeconfig, "--deny-list="+listFile(t, "users: [zoe]\n"))
	if err != nil || strings.Contains(out, "deny-list") || strings.Contains(out, "\napp ") {
		t.Errorf("without a token: %s, %v", out, err)
	}
	if _, err := run(t, "explain", "whoami", "--kubeconfig="+cluster.Kubeconfig, "--as=zoe", "--deny-list="+listFile(t, "users: zoe\n")); err == nil || !strings.Contains(err.Error(), "deny.yaml:2:8: ") {
		t.Errorf("a bad list gives %v", err)
	}
}
